//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Key};
use coord_harness::{ZkEnsemble, ZkOptions};
use coord_zk::{ZkConfig, ZkCoordinator};

/// The harness's default.
pub(crate) const TICK: Duration = Duration::from_millis(200);

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).expect("the tests' keys are valid")
}

/// For servers with the harness's default tick.
pub(crate) fn config(servers: impl Into<String>) -> ZkConfig {
    ZkConfig {
        tick: TICK,
        ..ZkConfig::new(servers)
    }
}

pub(crate) fn open(config: ZkConfig) -> Arc<dyn Coordinator> {
    ZkCoordinator::open(config, Env::system()).expect("a valid configuration")
}

pub(crate) async fn ensemble(nodes: usize) -> ZkEnsemble {
    ZkEnsemble::start(ZkOptions {
        nodes,
        tick: TICK,
        ..ZkOptions::default()
    })
    .await
}
