//! Those who look for what is left at a store find it.

use std::time::Duration;

use coord_faults::client::Store;
use coord_faults::{Cluster, left_now, leftovers};
use coord_harness::eventually;
use etcd_client::{Client, PutOptions};
use zookeeper_client::{Acls, Client as ZkClient, CreateMode};

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until each of these is found, and nothing else.
async fn found(cluster: &Cluster, what: &[&str]) {
    let all = format!("{what:?} are found");
    eventually(PATIENCE, &all, async || {
        let left = left_now(cluster).await;
        let each = what.iter().all(|what| left.iter().any(|left| left.contains(what)));
        (each && left.len() == what.len()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_etcd() {
    let cluster = Cluster::start(Store::Etcd, 1).await;
    assert_eq!(leftovers(&cluster).await, Vec::<String>::new());
    let client = Client::connect(cluster.addrs(), None).await.unwrap();
    let lease = client.lease_client().grant(60, None).await.unwrap().id();
    found(&cluster, &["of 60 s"]).await;
    let options = PutOptions::new().with_lease(lease);
    client.kv_client().put("/left", "", Some(options)).await.unwrap();
    found(&cluster, &["of 60 s", "entry /left"]).await;
    let watch = client.watch_client().watch("/left", None).await.unwrap();
    found(&cluster, &["of 60 s", "entry /left", "Some(1.0) watches"]).await;
    drop(watch);
    client.lease_client().revoke(lease).await.unwrap();
    assert_eq!(leftovers(&cluster).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_zookeeper() {
    let cluster = Cluster::start(Store::ZooKeeper, 1).await;
    assert_eq!(leftovers(&cluster).await, Vec::<String>::new());
    let client = ZkClient::connector()
        .with_session_timeout(Duration::from_secs(3))
        .connect(&cluster.addrs().join(","))
        .await
        .unwrap();
    found(&cluster, &["zk_global_sessions"]).await;
    let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    client.create("/left", b"", &options).await.unwrap();
    found(&cluster, &["zk_global_sessions", "zk_ephemerals_count"]).await;
    let (_, watcher) = client.check_and_watch_stat("/left").await.unwrap();
    found(
        &cluster,
        &["zk_global_sessions", "zk_ephemerals_count", "zk_watch_count"],
    )
    .await;
    drop((watcher, client));
    assert_eq!(leftovers(&cluster).await, Vec::<String>::new());
}
