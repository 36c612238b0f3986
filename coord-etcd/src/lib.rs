//! etcd v3 driver of coord-api: the [contract](coord_api::Coordinator) on a real etcd.
//!
//! [`EtcdCoordinator::open`] takes an [`EtcdConfig`] and works also while etcd is down. Keys are etcd's keys, below
//! [`EtcdConfig::root`], and values are stored byte for byte, so `etcdctl` reads and writes what this driver does. What
//! the driver needs for itself lies below `<root>/.coord/`, which no [`Key`](coord_api::Key) can name.
//!
//! How each promise is kept stands in `docs/drivers/etcd.md`.

mod background;
mod config;
mod coordinator;
mod core;
mod create;
mod entries;
mod failure;
mod keyspace;
mod leases;
mod ledger;
mod listing;
mod pool;
mod watch;

pub use config::{EtcdConfig, EtcdTls};
pub use coordinator::EtcdCoordinator;
