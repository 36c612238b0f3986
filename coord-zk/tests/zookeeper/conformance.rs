//! The conformance suite. A server takes a second of CPU to start, so one test runs the whole list, many at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, Result};
use coord_conformance::Opener;
use coord_harness::Proxy;
use coord_zk::ZkConfig;

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
    coord_conformance::check_all(&Servers(config), AT_ONCE).await;
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
