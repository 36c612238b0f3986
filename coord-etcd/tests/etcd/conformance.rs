//! The conformance suite on real etcd servers: one node, three nodes, and through a proxy that delays.

use std::time::Duration;

use coord_etcd::EtcdConfig;

use crate::support::{Etcd, key, nodes, proxies};

/// How many behaviours run at the same time: most of them wait for leases to end.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_on_one_node() {
    let etcd = nodes(1).await;
    coord_conformance::check_all(&Etcd(EtcdConfig::new(etcd.endpoints())), AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_on_three_nodes_below_a_root() {
    let etcd = nodes(3).await;
    let mut config = EtcdConfig::new(etcd.endpoints());
    config.root = key("/apps/test");
    coord_conformance::check_all(&Etcd(config), AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_through_a_proxy_that_delays() {
    let etcd = nodes(1).await;
    let (proxies, endpoints) = proxies(&etcd).await;
    proxies[0].delay(Duration::from_millis(2));
    coord_conformance::check_all(&Etcd(EtcdConfig::new(endpoints)), AT_ONCE).await;
}
