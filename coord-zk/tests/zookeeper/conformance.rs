//! The conformance suite. A server takes a second of CPU to start, so one test runs the whole list, many at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, Result};
use coord_conformance::{BEHAVIOURS, Opener, Outcome};
use coord_harness::Proxy;
use coord_zk::ZkConfig;
use futures::StreamExt;

use crate::support;

/// How many behaviours run at the same time: most of them wait for leases to end.
const AT_ONCE: usize = 8;

struct Servers(ZkConfig);

#[async_trait]
impl Opener for Servers {
    async fn open(&self) -> Result<Arc<dyn Coordinator>> {
        Ok(support::open(self.0.clone()))
    }
}

async fn keeps_every_promise(config: ZkConfig) {
    let servers = Servers(config);
    let outcomes: Vec<Outcome> = futures::stream::iter(BEHAVIOURS)
        .map(|behaviour| coord_conformance::run(behaviour, &servers))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    assert_eq!(outcomes.len(), BEHAVIOURS.len());
    for outcome in &outcomes {
        println!("{:6.2} s  {outcome}", outcome.took.as_secs_f64());
    }
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed())
        .map(ToString::to_string)
        .collect();
    assert!(failed.is_empty(), "{} not kept:\n{}", failed.len(), failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_server_keeps_every_promise() {
    let ensemble = support::ensemble(1).await;
    keeps_every_promise(support::config(ensemble.connect_string() + "/some/app")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ensemble_of_three_keeps_every_promise() {
    let ensemble = support::ensemble(3).await;
    keeps_every_promise(support::config(ensemble.connect_string())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_slow_wire_it_keeps_every_promise() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    proxy.delay(Duration::from_millis(3));
    keeps_every_promise(support::config(proxy.addr().to_string())).await;
}
