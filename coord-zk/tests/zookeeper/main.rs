//! The driver on real ZooKeeper servers.

mod conformance;
mod creates;
mod expiry;
mod limits;
mod races;
mod recipes;
mod security;
mod server_faults;
mod standing;
mod support;
mod watches;
mod wire_faults;
