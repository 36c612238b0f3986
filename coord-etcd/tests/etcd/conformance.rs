//! The conformance suite on real etcd servers: one node, three nodes, and through a proxy that delays.

use std::time::Duration;

use coord_etcd::EtcdConfig;

use crate::support::{conformance, key, nodes, proxies};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_on_one_node() {
    let etcd = nodes(1).await;
    conformance(EtcdConfig::new(etcd.endpoints()), 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_on_three_nodes_below_a_root() {
    let etcd = nodes(3).await;
    let mut config = EtcdConfig::new(etcd.endpoints());
    config.root = key("/apps/test");
    conformance(config, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_through_a_proxy_that_delays() {
    let etcd = nodes(1).await;
    let (proxies, endpoints) = proxies(&etcd).await;
    proxies[0].delay(Duration::from_millis(2));
    conformance(EtcdConfig::new(endpoints), 8).await;
}
