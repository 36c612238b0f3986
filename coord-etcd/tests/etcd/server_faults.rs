//! One etcd that dies, pauses, fills up: calls end by their deadline, and everything works again with the same client.

use std::time::Duration;

use coord_api::{
    Class, Coordinator, CoordinatorExt, Election, ElectionConfig, ErrorKind, Expect, Key, Session, SessionConfig,
};
use coord_harness::{EtcdCluster, EtcdOptions, eventually};
use tokio::time::timeout;

use crate::support::{AtWork, LIMIT, SOON, client, key, nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_and_restart_with_data() {
    let etcd = nodes(1).await;
    let mut work = AtWork::start(client(etcd.endpoints(), LIMIT)).await;
    etcd.node(0).kill();
    work.every_call_fails_in_time().await;
    etcd.node(0).restart();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_for_longer_than_a_deadline_and_a_ttl() {
    let etcd = nodes(1).await;
    let mut work = AtWork::start(client(etcd.endpoints(), LIMIT)).await;
    let short = work.client.grant(Duration::from_secs(1)).await.unwrap();
    work.client
        .create_ephemeral(&key("/short"), "x", short.lease)
        .await
        .unwrap();
    etcd.node(0).pause();
    work.every_call_fails_in_time().await;
    let after_ttl = short.valid_until + work.client.capabilities().expiry_slack;
    work.client.env().sleep_until(after_ttl).await;
    etcd.node(0).resume();
    work.works_again().await;
    // Nobody renewed it: it may have been granted more time by the server's own pause, but it ends, and says so.
    let gone = eventually(SOON, "the short lease ends", async || {
        work.client.get(&key("/short")).await.unwrap().is_none()
    });
    gone.await;
    assert!(work.client.renew(short.lease).await.unwrap_err().is_lease_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_while_the_store_is_down() {
    let etcd = nodes(1).await;
    etcd.node(0).kill();
    let client = client(etcd.endpoints(), LIMIT);
    let error = client.get(&key("/a")).await.unwrap_err();
    assert!(error.is_transient() && error.class() == Class::NotSent, "{error:?}");
    let error = client.create_persistent(&key("/a"), "x").await.unwrap_err();
    assert_eq!(error.class(), Class::NotSent, "{error:?}");
    etcd.node(0).restart();
    eventually(SOON, "the first call works", async || client.get(&key("/a")).await).await;
    AtWork::start(client).await.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_that_never_left_are_nothing_to_revoke() {
    let etcd = nodes(1).await;
    etcd.node(0).kill();
    let client = client(etcd.endpoints(), LIMIT);
    let error = client.grant(Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(error.class(), Class::NotSent, "{error:?}");
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_revoked_by_somebody_else_is_lost() {
    let etcd = nodes(1).await;
    let work = AtWork::start(client(etcd.endpoints(), LIMIT)).await;
    let lease = work.client.grant(Duration::from_secs(60)).await.unwrap().lease;
    work.client.create_ephemeral(&key("/mine"), "x", lease).await.unwrap();
    etcd.etcdctl(&["lease", "revoke", &lease.to_string()]).await;
    assert!(work.client.renew(lease).await.unwrap_err().is_lease_lost());
    let error = work
        .client
        .create_ephemeral(&key("/mine"), "x", lease)
        .await
        .unwrap_err();
    assert!(error.is_lease_lost() && error.is_definite(), "{error:?}");
    work.client.revoke(lease).await.unwrap();
    // The driver's own lease, revoked the same way, is replaced by itself.
    let leases = etcd.etcdctl(&["lease", "list"]).await;
    for id in leases.lines().skip(1).filter(|id| *id != work.lease.to_string()) {
        etcd.etcdctl(&["lease", "revoke", id]).await;
    }
    work.client.create_persistent(&key("/still"), "x").await.unwrap();
}

/// etcd makes the write that crosses the quota, and says of it, too, that there is no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_for_want_of_room_has_not_happened() {
    const WRITERS: usize = 48;
    let options = EtcdOptions {
        quota_bytes: Some(8 * 1024 * 1024),
        ..EtcdOptions::default()
    };
    let etcd = EtcdCluster::start(options).await;
    let work = AtWork::start(client(etcd.endpoints(), Duration::from_secs(5))).await;
    let client = &work.client;
    // Half of them update what is there, half make something new, until there is no room.
    let writers = (0..WRITERS).map(|writer| async move {
        let name = |round: usize| key(&format!("/fill/{writer}-{round}"));
        let mut kept = client.create_persistent(&name(0), "small").await.unwrap();
        for round in 1.. {
            let value = vec![u8::try_from(round % 256).unwrap(); 20_000];
            let (key, before, error) = if writer % 2 == 0 {
                match client
                    .update(&kept.key, value.into(), Expect::Version(kept.version))
                    .await
                {
                    Ok(updated) => {
                        kept = updated;
                        continue;
                    }
                    Err(error) => (kept.key.clone(), Some(kept), error),
                }
            } else {
                match client.create_persistent(&name(round), value).await {
                    Ok(_) => continue,
                    Err(error) => (name(round), None, error),
                }
            };
            assert!(matches!(error.kind(), ErrorKind::StoreFull(_)), "{error:?}");
            if error.is_definite() {
                let now = client.get_latest(&key).await.unwrap();
                assert_eq!(
                    now.map(|now| now.version),
                    before.map(|before| before.version),
                    "refused, and made all the same: {error}"
                );
            }
            return;
        }
    });
    futures::future::join_all(writers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_says_so_and_works_again_when_the_operator_cleared_it() {
    let options = EtcdOptions {
        quota_bytes: Some(4 * 1024 * 1024),
        ..EtcdOptions::default()
    };
    let etcd = EtcdCluster::start(options).await;
    let mut work = AtWork::start(client(etcd.endpoints(), Duration::from_secs(5))).await;
    let session = Session::open(work.client.clone(), SessionConfig::default()).unwrap();
    session.connected().await.unwrap();
    let election = Election::new(&session, ElectionConfig::new(key("/election"), "candidate"));
    let fill = key("/fill");
    let value = vec![b'x'; 400_000];
    let entry = work.client.create_persistent(&fill, value.clone()).await.unwrap();
    let mut now = entry.clone();
    let error = loop {
        match work
            .client
            .update(&fill, value.clone().into(), Expect::Version(now.version))
            .await
        {
            Ok(updated) => now = updated,
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::StoreFull(_)), "{error:?}");
    // Of an unconditional one nobody can tell whether it was the one that crossed the quota.
    let error = work.client.update(&fill, "x".into(), Expect::Any).await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::StoreFull(_)) && error.is_unknown(),
        "{error:?}"
    );
    for error in [
        work.client.create_persistent(&key("/more"), "x").await.unwrap_err(),
        work.client.grant(Duration::from_secs(5)).await.unwrap_err(),
    ] {
        assert!(
            matches!(error.kind(), ErrorKind::StoreFull(_)) && error.is_definite(),
            "{error:?}"
        );
    }
    // What needs no room goes on: a leader does not lose its lease because the store is full.
    work.client.renew(work.lease).await.unwrap();
    assert_eq!(
        work.client.get_latest(&fill).await.unwrap().unwrap().created,
        entry.created
    );
    // A candidate is no exception to "everything heals by itself".
    let mut campaign = Box::pin(election.campaign());
    let gave_up = timeout(Duration::from_secs(1), &mut campaign).await;
    assert!(gave_up.is_err(), "{gave_up:?}");
    make_room(&etcd, &work, &fill).await;
    assert!(timeout(SOON, campaign).await.unwrap().unwrap().token() > entry.created);
    work.works_again().await;
}

/// What an operator does.
async fn make_room(etcd: &EtcdCluster, work: &AtWork, fill: &Key) {
    work.client.delete(fill, Expect::Any).await.unwrap();
    let status = etcd.etcdctl(&["endpoint", "status", "-w", "fields"]).await;
    let revision = status
        .lines()
        .find_map(|line| line.strip_prefix("\"Revision\" : "))
        .expect("etcd tells its revision");
    etcd.etcdctl(&["compact", "--physical", revision]).await;
    etcd.etcdctl(&["defrag"]).await;
    etcd.etcdctl(&["alarm", "disarm"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_large_for_the_server_is_refused_as_such() {
    let options = EtcdOptions {
        args: vec!["--max-request-bytes=4096".into()],
        ..EtcdOptions::default()
    };
    let etcd = EtcdCluster::start(options).await;
    let mut work = AtWork::start(client(etcd.endpoints(), LIMIT)).await;
    let state = work.state();
    for error in [
        work.client
            .create_persistent(&key("/big"), vec![b'x'; 8192])
            .await
            .unwrap_err(),
        work.client
            .update(&state, vec![b'x'; 8192].into(), Expect::Any)
            .await
            .unwrap_err(),
    ] {
        assert!(
            matches!(error.kind(), ErrorKind::LimitReached(_)) && error.is_definite(),
            "{error:?}"
        );
    }
    work.works_again().await;
}
