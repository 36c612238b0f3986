//! 10,000 registrations on a private ZooKeeper.

use std::time::Duration;

use coord_api::Env;
use coord_harness::{ZkEnsemble, ZkOptions};
use coord_zk::{ZkConfig, ZkCoordinator};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = ZkOptions::default();
    let tick = options.tick;
    let ensemble = ZkEnsemble::start(options).await;
    let config = ZkConfig {
        tick,
        ..ZkConfig::new(ensemble.connect_string())
    };
    let coordinator = ZkCoordinator::open(config, Env::system()).expect("it opens");
    let costs = coord_recipes_tests::registry_costs(coordinator, Duration::from_secs(4)).await;
    costs.print("zookeeper");
}
