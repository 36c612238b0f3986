//! What the tests of this driver share.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Key, Result};
use coord_conformance::{BEHAVIOURS, Opener};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions, Proxy};
use futures::StreamExt;

/// For conditions that hold soon on an idle machine, and surely on a loaded one.
pub const SOON: Duration = Duration::from_secs(20);

/// Opens clients of some etcd.
pub struct Etcd(pub EtcdConfig);

#[async_trait::async_trait]
impl Opener for Etcd {
    async fn open(&self) -> Result<Arc<dyn Coordinator>> {
        Ok(open(&self.0))
    }
}

pub fn open(config: &EtcdConfig) -> Arc<EtcdCoordinator> {
    EtcdCoordinator::open(config.clone(), Env::system()).expect("the configuration works")
}

/// A client of these endpoints whose calls end after `deadline`.
pub fn client(endpoints: Vec<String>, deadline: Duration) -> Arc<EtcdCoordinator> {
    let mut config = EtcdConfig::new(endpoints);
    config.call_deadline = deadline;
    open(&config)
}

pub async fn nodes(nodes: usize) -> EtcdCluster {
    let options = EtcdOptions {
        nodes,
        ..EtcdOptions::default()
    };
    EtcdCluster::start(options).await
}

pub async fn proxies(etcd: &EtcdCluster) -> (Vec<Proxy>, Vec<String>) {
    let mut proxies = Vec::new();
    for node in etcd.nodes() {
        proxies.push(Proxy::start(node.client_addr()).await);
    }
    let endpoints = proxies.iter().map(|proxy| format!("http://{}", proxy.addr())).collect();
    (proxies, endpoints)
}

/// Checks the whole list, `at_once` behaviours at a time: most of their time is waiting for leases to end.
pub async fn conformance(config: EtcdConfig, at_once: usize) {
    let opener = Etcd(config);
    let outcomes: Vec<_> = futures::stream::iter(BEHAVIOURS)
        .map(|behaviour| coord_conformance::run(behaviour, &opener))
        .buffer_unordered(at_once)
        .collect()
        .await;
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed())
        .map(ToString::to_string)
        .collect();
    assert_eq!(outcomes.len(), BEHAVIOURS.len());
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        outcomes.len(),
        failed.join("\n")
    );
}

pub fn key(key: &str) -> Key {
    key.parse().expect("a key")
}
