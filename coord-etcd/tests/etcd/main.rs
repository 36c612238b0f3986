//! The driver on real etcd servers.

mod conformance;
mod creates;
mod server_faults;
mod support;
mod wire_faults;
