//! Real etcd servers: start, serve, survive, speak TLS.

use coord_harness::{EtcdCluster, EtcdOptions, Tls, eventually};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn one_node_serves_and_keeps_its_data_over_kill_and_stop() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let node = etcd.node(0);
    let addr = node.client_addr();
    assert_eq!(etcd.leader().await, Some(0));
    etcd.etcdctl(&["put", "color", "blue"]).await;

    let first = node.pid();
    node.kill();
    assert_eq!(node.pid(), None);
    assert!(
        tokio::net::TcpStream::connect(addr).await.is_err(),
        "the port of a dead node refuses"
    );
    node.restart();
    etcd.wait_ready(SOON).await;
    assert_ne!(node.pid(), first);
    assert_eq!(
        etcd.etcdctl(&["get", "color", "--print-value-only"]).await.trim(),
        "blue"
    );

    node.stop().await;
    assert_eq!(node.pid(), None);
    node.restart();
    etcd.wait_ready(SOON).await;
    assert_eq!(node.client_addr(), addr);
    assert_eq!(
        etcd.etcdctl(&["get", "color", "--print-value-only"]).await.trim(),
        "blue"
    );
    assert!(!node.log_tail().is_empty());
}

#[tokio::test]
async fn three_nodes_elect_another_leader_while_theirs_is_paused() {
    let etcd = EtcdCluster::start(EtcdOptions {
        nodes: 3,
        ..Default::default()
    })
    .await;
    let old = eventually(SOON, "a leader", async || etcd.leader().await).await;
    etcd.etcdctl(&["put", "color", "blue"]).await;

    etcd.node(old).pause();
    let new = eventually(SOON, "another leader", async || etcd.leader().await).await;
    assert_ne!(new, old);
    eventually(SOON, "a write without the old leader", async || {
        etcd.try_etcdctl_at(new, &["put", "color", "red"]).await
    })
    .await;

    etcd.node(old).resume();
    etcd.wait_ready(SOON).await;
    let read = eventually(SOON, "a read at the resumed member", async || {
        etcd.try_etcdctl_at(old, &["get", "color", "--print-value-only"]).await
    })
    .await;
    assert_eq!(read.trim(), "red");
}

#[tokio::test]
async fn a_full_quota_refuses_writes_and_is_still_ready() {
    let etcd = EtcdCluster::start(EtcdOptions {
        quota_bytes: Some(64 * 1024),
        ..Default::default()
    })
    .await;
    let value = "x".repeat(50_000);
    let refused = eventually(SOON, "the quota fills", async || {
        etcd.try_etcdctl(&["put", "big", &value]).await.err()
    })
    .await;
    assert!(refused.contains("space exceeded"), "{refused}");
    etcd.wait_ready(SOON).await;
}

#[tokio::test]
async fn mutual_tls_serves_those_with_a_certificate_only() {
    let etcd = EtcdCluster::start(EtcdOptions {
        tls: Tls::Mutual,
        ..Default::default()
    })
    .await;
    assert!(etcd.endpoints()[0].starts_with("https://"));
    etcd.etcdctl(&["put", "color", "blue"]).await;
    assert_eq!(
        etcd.etcdctl(&["get", "color", "--print-value-only"]).await.trim(),
        "blue"
    );

    let ca = etcd.certs().expect("TLS is on").ca.clone();
    let stranger = tokio::process::Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args([
            "--endpoints",
            &etcd.endpoints()[0],
            "--command-timeout",
            "1s",
            "get",
            "color",
            "--cacert",
        ])
        .arg(ca)
        .output()
        .await
        .expect("etcdctl starts");
    assert!(!stranger.status.success(), "served a client without a certificate");
}
