//! Each sentence of the document that this crate was built after, as a test of its own, on all three drivers with real
//! nodes on sockets. `COORD_SENTENCE=<name>` runs that one alone.

mod sentences;
mod stage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_api::{Coordinator, Env};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions, ZkEnsemble, ZkOptions};
use coord_mem::MemStore;
use coord_zk::{ZkConfig, ZkCoordinator};
use futures::StreamExt;

use sentences::SENTENCES;
use stage::Stage;

/// How many play at the same time: they mostly wait.
const AT_ONCE: usize = 6;
/// No sentence takes this long.
const HANGS: Duration = Duration::from_secs(90);

/// Plays all sentences on one store, each below a prefix of its own; the others are finished when one fails.
async fn play_all(open: impl Fn() -> Arc<dyn Coordinator>) {
    let only = std::env::var("COORD_SENTENCE").ok();
    let chosen = SENTENCES
        .iter()
        .filter(|sentence| only.as_ref().is_none_or(|only| sentence.name == only));
    let open: &dyn Fn() -> Arc<dyn Coordinator> = &open;
    let failed: Vec<&str> = futures::stream::iter(chosen)
        .map(|sentence| async move {
            // Two clients are enough for the nodes of one sentence and its observer.
            let stage = Stage::new(sentence.name, open(), open());
            let started = Instant::now();
            let played = tokio::spawn(tokio::time::timeout(HANGS, (sentence.play)(stage))).await;
            let held = matches!(played, Ok(Ok(())));
            let outcome = if held { "ok" } else { "FAILED" };
            println!(
                "{:6.1} s  {outcome:6}  {}",
                started.elapsed().as_secs_f64(),
                sentence.name
            );
            (!held).then_some(sentence.name)
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    assert!(failed.is_empty(), "{} of the sentences: {failed:?}", failed.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory() {
    let store = MemStore::new(&Env::system());
    play_all(|| store.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let address = etcd.node(0).client_addr().to_string();
    play_all(|| {
        let config = EtcdConfig::new([address.clone()]);
        EtcdCoordinator::open(config, Env::system()).expect("the configuration works")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zookeeper() {
    let ensemble = ZkEnsemble::start(ZkOptions::default()).await;
    let address = ensemble.node(0).client_addr().to_string();
    play_all(|| {
        let config = ZkConfig {
            // As the harness starts its servers.
            tick: Duration::from_millis(200),
            ..ZkConfig::new(address.clone())
        };
        ZkCoordinator::open(config, Env::system()).expect("the configuration works")
    })
    .await;
}
