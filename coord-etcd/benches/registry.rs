//! 10,000 registrations on a private etcd.

use std::time::Duration;

use coord_api::Env;
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let coordinator = EtcdCoordinator::open(EtcdConfig::new(etcd.endpoints()), Env::system()).expect("it opens");
    let costs = coord_recipes_tests::registry_costs(coordinator, Duration::from_secs(4)).await;
    costs.print("etcd");
}
