//! What the driver costs the store: requests, watches, connections.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Expect, Target, WatchEvent};
use coord_harness::{EtcdCluster, eventually};

use crate::support::{SOON, behind_a_proxy, client, key, nodes};

const PATIENT: Duration = Duration::from_secs(5);
const TTL: Duration = Duration::from_secs(60);

/// How many requests of this kind the server has been sent.
async fn requests(etcd: &EtcdCluster, method: &str) -> f64 {
    let name = format!(
        r#"grpc_server_started_total{{grpc_method="{method}",grpc_service="etcdserverpb.KV",grpc_type="unary"}}"#
    );
    etcd.metric(0, &name).await.expect("etcd counts requests")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_write_is_one_transaction_and_one_round_trip() {
    let etcd = nodes(1).await;
    let client = client(etcd.endpoints(), PATIENT);
    let lease = client.grant(TTL).await.unwrap().lease;
    client.create_persistent(&key("/warm"), "x").await.unwrap();
    let (mut txns, others) = (requests(&etcd, "Txn").await, requests(&etcd, "Range").await);
    let mut one_more = async |what: &str| {
        let now = requests(&etcd, "Txn").await;
        assert_eq!(now - txns, 1.0, "{what}");
        txns = now;
    };
    let entry = client.create_persistent(&key("/deep/down/here"), "x").await.unwrap();
    one_more("a create with its parents").await;
    client.create_persistent(&entry.key, "x").await.unwrap_err();
    one_more("a refused create").await;
    let entry = client
        .update(&entry.key, "y".into(), entry.version.into())
        .await
        .unwrap();
    one_more("a conditional update").await;
    client.update(&entry.key, "z".into(), Expect::Any).await.unwrap();
    one_more("an update").await;
    client.delete(&entry.key, entry.version.into()).await.unwrap_err();
    one_more("a refused delete").await;
    client.delete(&entry.key, Expect::Any).await.unwrap();
    one_more("a delete").await;
    let first = client.create_sequential(&key("/queue"), "x", lease).await.unwrap();
    one_more("a sequential create").await;
    assert!(client.standing(&first).await.unwrap().is_lowest());
    one_more("standing").await;
    assert_eq!(requests(&etcd, "Range").await, others, "reads of their own");
    for other in ["Put", "DeleteRange"] {
        assert_eq!(requests(&etcd, other).await, 0.0, "{other}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_watches_are_cancelled_at_the_server() {
    let etcd = nodes(1).await;
    let client = client(etcd.endpoints(), PATIENT);
    let watches = async || etcd.metric(0, "etcd_debugging_mvcc_watcher_total").await;
    assert_eq!(watches().await, Some(0.0));
    let mut held = Vec::new();
    for n in 0..40 {
        let target = match n % 2 {
            0 => Target::Key(key(&format!("/w/{n}"))),
            _ => Target::Children(key(&format!("/w/{n}"))),
        };
        let mut watch = client.watch(&target).await.unwrap();
        assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::State(vec![]));
        held.push(watch);
    }
    // And the one that holds the stream.
    assert_eq!(watches().await, Some(41.0));
    let mut last = held.pop().unwrap();
    held.clear();
    // One that is dropped while it begins.
    drop(
        client
            .env()
            .timeout_at(client.env().now(), client.watch(&Target::Key(key("/w"))))
            .await,
    );
    eventually(SOON, "one is left", async || watches().await == Some(2.0)).await;
    client.create_persistent(&key("/w/39/child"), "x").await.unwrap();
    assert!(matches!(last.next().await, Some(Ok(WatchEvent::Put(_)))));
    drop(last);
    eventually(SOON, "none is left", async || watches().await == Some(0.0)).await;
}

/// The server closes connections that ping more often than every five seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_is_not_punished_for_its_pings() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    let before = proxy.stats().accepted;
    // Not to wait for anything: idle is what it is meant to be.
    work.client.env().sleep(Duration::from_secs(8)).await;
    work.works_again().await;
    assert_eq!(proxy.stats().accepted, before, "the connection was lost");
}
