//! Limits that come out as clear errors.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Create, CreateMode, ErrorKind, Key};
use coord_harness::{Proxy, ZkEnsemble, ZkOptions};
use coord_zk::ZkConfig;
use futures::{StreamExt, TryStreamExt};

use crate::support::{self, config, heals, keep, key, open};

const TTL: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_limit_per_address_is_named() {
    let ensemble = ZkEnsemble::start(ZkOptions {
        max_client_cnxns: 4,
        tick: support::TICK,
        ..ZkOptions::default()
    })
    .await;
    let coordinator = open(config(ensemble.connect_string()));
    coordinator.create_persistent(&key("/x"), "x").await.unwrap();
    let mut grants = Vec::new();
    let error = loop {
        match coordinator.grant(TTL).await {
            Ok(grant) => grants.push(grant),
            Err(error) => break error,
        }
    };
    assert!(grants.len() <= 3, "{}", grants.len());
    assert!(
        matches!(error.kind(), ErrorKind::LimitReached(hint) if hint.contains("maxClientCnxns")),
        "{error:?}"
    );
    for grant in grants {
        let _ = coordinator.revoke(grant.lease).await;
    }
    heals(&coordinator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_full_before_it_endangers_the_ensemble() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let grant = coordinator.grant(TTL).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let name = long_keys(&coordinator).await;
    // Just below the cap: 1,000 bytes each with what the driver adds.
    futures::stream::iter(0..980)
        .map(|n| {
            let (coordinator, name) = (coordinator.clone(), name(n));
            async move { coordinator.create_ephemeral(&name, "", grant.lease).await }
        })
        .buffer_unordered(64)
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    let mut made = 980;
    let error = loop {
        match coordinator.create_ephemeral(&name(made), "", grant.lease).await {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
        assert!(made < 1100, "no limit");
    };
    assert_eq!(*error.kind(), ErrorKind::LeaseFull(grant.lease));
    assert!(error.is_definite());
    // What others delete makes room, although we were not told.
    let other = open(config(ensemble.connect_string()));
    for n in 0..5 {
        other.delete(&name(n), coord_api::Expect::Any).await.unwrap();
    }
    let again = Create::new(coordinator.env(), name(made), "", CreateMode::Ephemeral(grant.lease));
    coordinator.create(&again).await.unwrap();
    // Another lease carries on, and ending the full one harms nobody.
    let second = coordinator.grant(TTL).await.unwrap();
    coordinator
        .create_ephemeral(&name(made + 1), "", second.lease)
        .await
        .unwrap();
    coordinator.revoke(grant.lease).await.unwrap();
    heals(&coordinator).await;
    assert_eq!(coordinator.children(&name(0).parent().unwrap()).await.unwrap().len(), 1);
}

/// Keys of 1,000 bytes each with what the driver adds, below a folder that is there.
async fn long_keys(coordinator: &Arc<dyn Coordinator>) -> impl Fn(usize) -> Key + use<> {
    let folder = key(&format!("/{}/{}/{}", "a".repeat(250), "b".repeat(250), "c".repeat(250)));
    coordinator.create_persistent(&folder, "").await.unwrap();
    move |n| folder.child(format!("{}{n:06}", "d".repeat(230))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_are_refused_make_no_room_on_a_full_lease() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let grant = coordinator.grant(TTL).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let name = long_keys(&coordinator).await;
    futures::stream::iter(0..950)
        .map(|n| {
            let (coordinator, name) = (coordinator.clone(), name(n));
            async move {
                coordinator.create_ephemeral(&name, "", grant.lease).await.unwrap();
                let again = coordinator.create_ephemeral(&name, "", grant.lease).await.unwrap_err();
                assert!(matches!(again.kind(), ErrorKind::AlreadyExists(_)), "{again:?}");
            }
        })
        .buffer_unordered(64)
        .collect::<Vec<_>>()
        .await;
    for n in 950..1100 {
        if let Err(error) = coordinator.create_ephemeral(&name(n), "", grant.lease).await {
            assert_eq!(*error.kind(), ErrorKind::LeaseFull(grant.lease));
            return;
        }
    }
    panic!("no limit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_does_not_fill_a_lease_beyond_its_limit() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(ZkConfig {
        call_deadline: Duration::from_secs(30),
        ..config(ensemble.connect_string())
    });
    let grant = coordinator.grant(TTL).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let name = long_keys(&coordinator).await;
    // All at once, and before there are guards: each has to be sent more than once.
    let creates = (0..1600).map(|n| {
        let (coordinator, name) = (coordinator.clone(), name(n));
        async move { coordinator.create_ephemeral(&name, "", grant.lease).await }
    });
    let mut made = 0;
    for created in futures::future::join_all(creates).await {
        match created {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(*error.kind(), ErrorKind::LeaseFull(grant.lease), "{error:?}"),
        }
    }
    assert!(made <= 1010, "{made} entries of 1,000 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_server_is_not_taken_for_a_full_one() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let coordinator = open(ZkConfig {
        call_deadline: Duration::from_secs(2),
        ..config(proxy.addr().to_string())
    });
    coordinator.create_persistent(&key("/x"), "x").await.unwrap();
    // Too slow for so short a session, and fast enough for the shared one.
    proxy.delay(Duration::from_millis(100));
    let error = coordinator.grant(support::TICK * 2).await.unwrap_err();
    assert!(error.is_transient() && !error.is_definite(), "{error:?}");
    proxy.pass();
    heals(&coordinator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ttl_is_what_the_server_grants() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    for (asked, ticks) in [(1, 2), (1000, 5), (3_600_000, 20)] {
        let asked_at = coordinator.env().now();
        let grant = coordinator.grant(Duration::from_millis(asked)).await.unwrap();
        assert_eq!(grant.ttl, support::TICK * ticks, "asked for {asked} ms");
        assert!(grant.valid_until >= asked_at + grant.ttl && grant.valid_until <= coordinator.env().now() + grant.ttl);
    }
}
