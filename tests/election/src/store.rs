use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Result};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_zk::{ZkConfig, ZkCoordinator};

/// Which store, on the command line of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// One or more etcd servers.
    Etcd,
    /// One or more ZooKeeper servers.
    ZooKeeper,
}

impl Store {
    /// The store of this name.
    pub fn named(name: &str) -> Option<Store> {
        [Store::Etcd, Store::ZooKeeper]
            .into_iter()
            .find(|store| store.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Store::Etcd => "etcd",
            Store::ZooKeeper => "zookeeper",
        }
    }

    /// A client of the server at `address`, with deadlines that fit the short leases of tests.
    pub fn open(self, address: &str) -> Result<Arc<dyn Coordinator>> {
        let (env, call_deadline) = (Env::system(), Duration::from_secs(2));
        Ok(match self {
            Store::Etcd => {
                let mut config = EtcdConfig::new([address]);
                config.call_deadline = call_deadline;
                EtcdCoordinator::open(config, env)?
            }
            Store::ZooKeeper => {
                let config = ZkConfig {
                    // As the harness starts its servers.
                    tick: Duration::from_millis(200),
                    call_deadline,
                    ..ZkConfig::new(address)
                };
                ZkCoordinator::open(config, env)?
            }
        })
    }
}
