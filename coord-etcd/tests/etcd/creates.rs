//! Creates whose answers are lost, and those that are given up.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Create, CreateMode, ErrorKind};
use coord_harness::eventually;

use crate::support::{SOON, behind_a_proxy, client, key, nodes, proxies};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_create_is_settled_by_the_same_create() {
    let (_etcd, proxy, work) = behind_a_proxy().await;
    let create = Create::new(work.client.env(), key("/once"), "mine", CreateMode::Persistent);
    // So that the ledger has its lease.
    work.client.create_persistent(&key("/warm"), "x").await.unwrap();
    proxy.drop_answers();
    let error = work.client.create(&create).await.unwrap_err();
    assert!(error.is_unknown(), "{error:?}");
    proxy.pass();
    let entry = eventually(SOON, "it is settled", async || work.client.create(&create).await).await;
    assert_eq!(entry.value, "mine");
    assert_eq!(
        work.client.get(&key("/once")).await.unwrap().unwrap().created,
        entry.created
    );
    let other = work.client.create_persistent(&key("/once"), "other").await.unwrap_err();
    assert_eq!(other.holder().unwrap().created, entry.created);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_create_leaves_no_ghost() {
    let etcd = nodes(1).await;
    let (mut proxies, mut endpoints) = proxies(&etcd).await;
    let proxy = proxies.remove(0);
    for round in 0..20 {
        // One client sends into the held connection; the same client reaches the store elsewhere to abandon.
        endpoints.truncate(1);
        let client = client([endpoints.clone(), etcd.endpoints()].concat(), Duration::from_secs(4));
        let lease = client.grant(Duration::from_secs(60)).await.unwrap().lease;
        client
            .create_persistent(&key(&format!("/warm{round}")), "x")
            .await
            .unwrap();
        let mode = if round % 2 == 0 {
            CreateMode::Sequential(lease)
        } else {
            CreateMode::Ephemeral(lease)
        };
        let create = Create::new(client.env(), key(&format!("/ghost{round}")), "x", mode);
        proxy.hold_requests();
        // Dropped half-way, with copies on both ways; then given up.
        let _ = client
            .env()
            .timeout_at(
                client.env().now() + Duration::from_millis(3 * round),
                client.create(&create),
            )
            .await;
        client.abandon(&create).await.unwrap();
        proxy.release();
        proxy.pass();
        // A repeat is refused for good, and nothing is there.
        let again = client.create(&create).await.unwrap_err();
        assert_eq!(again.kind(), &ErrorKind::Abandoned, "{again:?}");
        assert!(client.children(&create.key).await.unwrap().is_empty(), "round {round}");
        assert!(!matches!(create.mode, CreateMode::Ephemeral(_)) || client.get(&create.key).await.unwrap().is_none());
        client.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ephemeral_parent_is_refused_however_far_up() {
    let etcd = nodes(1).await;
    let client = client(etcd.endpoints(), SOON);
    let lease = client.grant(Duration::from_secs(60)).await.unwrap().lease;
    let ephemeral = client.create_ephemeral(&key("/e"), "x", lease).await.unwrap();
    // The parents of the second do not fit into one transaction.
    for levels in [50, 150] {
        let deep = key(&format!("/e{}", "/d".repeat(levels)));
        let error = client.create_persistent(&deep, "x").await.unwrap_err();
        assert_eq!(
            error.kind(),
            &ErrorKind::EphemeralParent(ephemeral.key.clone()),
            "{levels}"
        );
        assert!(error.is_definite(), "{levels}: {error:?}");
        assert_eq!(client.get(&deep).await.unwrap(), None, "{levels}");
    }
}
