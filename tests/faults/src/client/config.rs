use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Result};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_zk::{ZkConfig, ZkCoordinator};
use serde::{Deserialize, Serialize};

use super::Mutant;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// etcd.
    Etcd,
    /// ZooKeeper.
    ZooKeeper,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Reads and writes of a few keys.
    Registers,
    /// Watches of the same.
    Watches,
    /// Both elections, with a fenced register each.
    Elections,
    /// A registration.
    Registry,
    /// Sequential entries.
    Sequences,
}

/// What a client is told on its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientConfig {
    /// Where.
    pub store: Store,
    /// The ways to the servers, `host:port`.
    pub servers: Vec<String>,
    /// What it is called: `c1.0` is the first life of client 1.
    pub who: String,
    /// Which client it is, and no other before or after: its values are known by it.
    pub incarnation: u64,
    /// The deadline of its calls.
    pub call_deadline: Duration,
    /// The time to live of its session.
    pub ttl: Duration,
    /// For its choices.
    pub seed: u64,
    /// What it does.
    pub parts: Vec<Part>,
    /// How many callers work on the registers side by side.
    pub workers: u64,
    /// How long a caller pauses after each call, about.
    pub pause: Duration,
    /// How long it leads at most.
    pub longest_term: Duration,
    /// Without our drivers.
    pub bare: bool,
    /// What is wrong with it.
    pub mutant: Option<Mutant>,
}

// === impl Store ===

impl Store {
    /// Both.
    pub const ALL: [Store; 2] = [Store::Etcd, Store::ZooKeeper];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Store::Etcd => "etcd",
            Store::ZooKeeper => "zookeeper",
        }
    }

    /// The store of this name.
    pub fn named(name: &str) -> Option<Store> {
        Store::ALL.into_iter().find(|store| store.name() == name)
    }

    /// A client of these servers.
    ///
    /// # Errors
    /// When the configuration cannot work.
    pub fn open(self, servers: &[String], call_deadline: Duration, env: Env) -> Result<Arc<dyn Coordinator>> {
        Ok(match self {
            Store::Etcd => {
                let mut config = EtcdConfig::new(servers);
                config.call_deadline = call_deadline;
                EtcdCoordinator::open(config, env)?
            }
            Store::ZooKeeper => {
                let config = ZkConfig {
                    call_deadline,
                    session_timeout: Duration::from_secs(3),
                    tick: TICK,
                    ..ZkConfig::new(servers.join(","))
                };
                ZkCoordinator::open(config, env)?
            }
        })
    }
}

/// ZooKeeper's tick in these clusters.
pub(crate) const TICK: Duration = Duration::from_millis(200);

impl ClientConfig {
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}
