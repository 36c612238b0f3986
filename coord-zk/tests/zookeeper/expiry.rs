//! Sessions that end although everybody is well.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Create, CreateMode, Env, Target, WatchEvent};
use coord_harness::{Proxy, ZkEnsemble, eventually};
use coord_zk::ZkCoordinator;

use crate::support::{self, HEAL, config, force_expiry, heals, keep, key, next, open, until_value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_closed_from_outside_is_lost_and_everything_goes_on() {
    let ensemble = support::ensemble(1).await;
    let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
    let coordinator: Arc<dyn Coordinator> = zk.clone();
    heals(&coordinator).await;
    let watched = key("/watched");
    coordinator.create_persistent(&watched, "1").await.unwrap();
    let mut watch = coordinator.watch(&Target::Key(watched.clone())).await.unwrap();
    assert!(matches!(next(&mut watch).await, WatchEvent::State(entries) if entries.len() == 1));

    // The shared session: nobody but the watch notices, and the watch says so.
    force_expiry(&ensemble, &zk.sessions()[0]).await;
    assert!(matches!(next(&mut watch).await, WatchEvent::Resync(entries) if entries.len() == 1));
    heals(&coordinator).await;
    coordinator
        .update(&watched, "2".into(), coord_api::Expect::Any)
        .await
        .unwrap();
    until_value(&mut watch, "2").await;

    // A lease's session: the lease is lost, and its entries are gone.
    let grant = coordinator.grant(Duration::from_secs(4)).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let create = Create::new(coordinator.env(), key("/mine"), "x", CreateMode::Ephemeral(grant.lease));
    let mine = coordinator.create(&create).await.unwrap();
    let session = zk
        .sessions()
        .into_iter()
        .find(|session| session.id().0 as u64 == grant.lease.0);
    force_expiry(&ensemble, &session.unwrap()).await;
    eventually(HEAL, "the lease is lost", async || {
        coordinator
            .renew(grant.lease)
            .await
            .is_err_and(|error| error.is_lease_lost())
    })
    .await;
    assert_eq!(coordinator.get_latest(&mine.key).await.unwrap(), None);
    let error = coordinator.create(&create).await.unwrap_err();
    assert!(error.is_lease_lost(), "{error:?}");
    coordinator.revoke(grant.lease).await.unwrap();
    coordinator.abandon(&create).await.unwrap();
    heals(&coordinator).await;
    coordinator.close().await.unwrap();
}

/// How many connections the server has, the one that asks included.
async fn connections(ensemble: &ZkEnsemble) -> Option<usize> {
    let answer = ensemble.four_letter(0, "mntr").await.ok()?;
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix("zk_num_alive_connections"))?;
    line.trim().parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_nobody_waits_for_leaves_no_session_behind() {
    let ensemble = support::ensemble(1).await;
    let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
    let coordinator: Arc<dyn Coordinator> = zk.clone();
    heals(&coordinator).await;
    let env = coordinator.env();
    let mut granted = 0;
    for _ in 0..60 {
        let given_up = env.now() + env.random_duration(Duration::from_millis(12));
        let grant = env
            .timeout_at(given_up, coordinator.grant(Duration::from_secs(4)))
            .await;
        granted += usize::from(grant.is_some_and(|grant| grant.is_ok()));
    }
    // What was given up may have been granted all the same: then it is a lease like any other, which ends by its ttl.
    eventually(
        HEAL,
        "the connections are those of the leases, ours, and the one that asks",
        async || {
            connections(&ensemble)
                .await
                .is_some_and(|open| open <= zk.sessions().len() + 1)
        },
    )
    .await;
    println!("{granted} granted, {} live", zk.sessions().len());
    coordinator.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_and_dropping_leave_no_session_behind() {
    let ensemble = support::ensemble(1).await;
    for close in [true, false] {
        let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
        let coordinator: Arc<dyn Coordinator> = zk;
        for n in 0..3 {
            let name = key(&format!("/{close}/{n}"));
            coordinator
                .create_with_ttl(&name, "x", Duration::from_secs(4))
                .await
                .unwrap();
        }
        let _watch = coordinator
            .watch(&Target::Children(key(&format!("/{close}"))))
            .await
            .unwrap();
        if close {
            coordinator.close().await.unwrap();
            coordinator.close().await.unwrap();
            assert!(coordinator.get(&key("/x")).await.unwrap_err().is_closed());
        }
        drop(coordinator);
        // The one that asks is the last.
        eventually(Duration::from_secs(3), "all connections closed", async || {
            connections(&ensemble).await.is_some_and(|open| open <= 1)
        })
        .await;
    }
}

/// The call waits for a connection, and looks again only when whoever would bring one is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_a_call_that_waits_for_a_connection() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let coordinator = open(config(proxy.addr().to_string()));
    let name = key("/x");
    coordinator.get(&name).await.unwrap();
    let hasty = coordinator.within(Duration::from_millis(100));
    proxy.cut();
    eventually(HEAL, "the loss is noticed", async || hasty.get(&name).await.is_err()).await;
    let mut waiting = std::pin::pin!(coordinator.get(&name));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    let _ = hasty.close().await;
    let error = waiting.await.unwrap_err();
    assert!(error.is_closed(), "{error:?}");
}

#[tokio::test]
async fn a_grant_during_a_close_leaves_no_lease_behind() {
    let ensemble = support::ensemble(1).await;
    let mut granted = 0;
    for _ in 0..60 {
        let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
        let coordinator: Arc<dyn Coordinator> = zk.clone();
        coordinator.get(&key("/x")).await.unwrap();
        let env = coordinator.env();
        let close = async {
            env.sleep(env.random_duration(Duration::from_millis(8))).await;
            coordinator.close().await
        };
        let (closed, grant) = futures::join!(close, coordinator.grant(Duration::from_secs(4)));
        closed.unwrap();
        granted += usize::from(grant.is_ok());
        // The first one is the shared one's.
        assert!(zk.sessions().len() <= 1, "{granted} granted so far");
    }
    println!("{granted} of 60 granted");
}
