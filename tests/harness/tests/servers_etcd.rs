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

async fn three() -> EtcdCluster {
    EtcdCluster::start(EtcdOptions {
        nodes: 3,
        partitions: true,
        ..Default::default()
    })
    .await
}

#[tokio::test]
async fn an_isolated_leader_is_replaced_and_comes_back_as_a_follower() {
    let etcd = three().await;
    let old = eventually(SOON, "a leader", async || etcd.leader().await).await;
    etcd.isolate(old);
    eventually(SOON, "a write without the old leader", async || {
        etcd.try_etcdctl_at((old + 1) % 3, &["put", "color", "red"]).await
    })
    .await;
    assert!(
        etcd.try_etcdctl_at(old, &["--command-timeout=500ms", "get", "color"])
            .await
            .is_err(),
        "it serves clients no reads through a quorum that it does not have"
    );
    // Also after a restart it is the one that is cut off.
    etcd.restart(old);
    let put = ["--command-timeout=2s", "put", "color", "green"];
    assert!(etcd.try_etcdctl_at(old, &put).await.is_err(), "it is alone");

    etcd.rejoin();
    eventually(SOON, "the old leader serves what it missed", async || {
        match etcd.try_etcdctl_at(old, &["get", "color", "--print-value-only"]).await {
            Ok(color) if color.trim() == "red" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn leadership_moves_history_is_compacted_and_a_member_is_replaced() {
    let etcd = three().await;
    let old = eventually(SOON, "a leader", async || etcd.leader().await).await;
    etcd.etcdctl(&["put", "color", "blue"]).await;
    let new = (old + 1) % 3;
    etcd.move_leader(new).await.expect("leadership moves");
    eventually(SOON, "the leader that was asked for", async || {
        etcd.leader().await == Some(new)
    })
    .await;

    etcd.compact().await.expect("the history goes");
    let past = etcd.try_etcdctl(&["get", "color", "--rev=1"]).await;
    assert!(past.expect_err("it is gone").contains("compacted"));

    let before = etcd.etcdctl(&["member", "list"]).await;
    etcd.replace(old).await.expect("the member is replaced");
    etcd.wait_ready(SOON).await;
    let after = etcd.etcdctl(&["member", "list"]).await;
    assert_ne!(before, after, "the member is another one");
    let color = etcd.try_etcdctl_at(old, &["get", "color", "--print-value-only"]).await;
    assert_eq!(
        color.expect("it serves").trim(),
        "blue",
        "it has learned what it had forgotten"
    );
}
