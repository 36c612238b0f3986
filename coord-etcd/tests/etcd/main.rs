//! The driver on real etcd servers.

mod cluster_faults;
mod conformance;
mod creates;
mod economy;
mod foreign_keys;
mod leases;
mod security;
mod server_faults;
mod support;
mod wire_faults;
