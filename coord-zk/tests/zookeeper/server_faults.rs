//! Servers that die, stand still, or are too few.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Class, Coordinator, CoordinatorExt, Create, CreateMode, Env, Target};
use coord_harness::{ZkEnsemble, ZkOptions, eventually};
use coord_zk::{ZkConfig, ZkCoordinator};

use crate::support::{self, HEAL, config, heals, in_time, keep, key, next, open, until_value};

const DEADLINE: Duration = Duration::from_millis(1000);
const LONGEST_TTL: Duration = Duration::from_secs(4);

/// Reads and writes end by their deadline with an error that says that the store is to blame.
async fn calls_fail_clearly(coordinator: &Arc<dyn Coordinator>) {
    let coordinator = &coordinator.within(DEADLINE);
    let missing = key("/unreachable");
    let read = in_time(&**coordinator, coordinator.get(&missing)).await.unwrap_err();
    assert!(read.is_transient() && read.class() == Class::NotSent, "{read:?}");
    let write = in_time(&**coordinator, coordinator.create_persistent(&missing, "x"))
        .await
        .unwrap_err();
    assert!(write.is_transient() && !write.is_definite(), "{write:?}");
    let grant = in_time(&**coordinator, coordinator.grant(LONGEST_TTL))
        .await
        .unwrap_err();
    assert!(grant.is_transient(), "{grant:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_comes_back_with_its_data() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let kept = key("/a/kept");
    coordinator.create_persistent(&kept, "1").await.unwrap();
    let mut watch = coordinator.watch(&Target::Key(kept.clone())).await.unwrap();
    until_value(&mut watch, "1").await;

    ensemble.node(0).kill();
    calls_fail_clearly(&coordinator).await;
    ensemble.node(0).restart();
    ensemble.wait_ready(HEAL).await;
    heals(&coordinator).await;

    let entry = coordinator.get_latest(&kept).await.unwrap().unwrap();
    assert_eq!(entry.value, "1");
    coordinator
        .update(&kept, "2".into(), entry.version.into())
        .await
        .unwrap();
    until_value(&mut watch, "2").await;
    coordinator.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_opens_while_the_server_is_down() {
    let ensemble = support::ensemble(1).await;
    ensemble.node(0).kill();
    let coordinator = open(config(ensemble.connect_string() + "/not/yet/there"));
    let mut watch = coordinator.watch(&Target::Key(key("/k"))).await.unwrap();
    calls_fail_clearly(&coordinator).await;
    ensemble.node(0).restart();
    heals(&coordinator).await;
    coordinator.create_persistent(&key("/k"), "v").await.unwrap();
    until_value(&mut watch, "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_longer_than_a_deadline_harms_nothing() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let grant = coordinator.grant(LONGEST_TTL).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let late = Create::new(coordinator.env(), key("/c"), "x", CreateMode::Sequential(grant.lease));
    let persistent = Create::new(coordinator.env(), key("/p/one"), "x", CreateMode::Persistent);
    heals(&coordinator).await;

    ensemble.node(0).pause();
    for create in [&late, &persistent] {
        let hasty = coordinator.within(DEADLINE);
        let error = in_time(&*hasty, hasty.create(create)).await.unwrap_err();
        assert!(!error.is_definite(), "{error:?}");
    }
    calls_fail_clearly(&coordinator).await;
    ensemble.node(0).resume();
    heals(&coordinator).await;
    // Whatever became of the first copies: the same create again makes one entry, not two.
    for create in [&late, &persistent] {
        let made = eventually(HEAL, "the create is settled", async || {
            match coordinator.create(create).await {
                Err(error) if error.is_lease_lost() => Ok(None),
                other => other.map(Some),
            }
        })
        .await;
        if let Some(made) = made {
            let parent = made.key.parent().unwrap();
            assert_eq!(coordinator.children(&parent).await.unwrap().len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_longer_than_a_session_ends_the_lease() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let (grant, _) = coordinator
        .create_with_ttl(&key("/mine"), "x", Duration::from_millis(600))
        .await
        .unwrap();
    let mut watch = coordinator
        .watch(&Target::Children(coord_api::Key::root()))
        .await
        .unwrap();
    next(&mut watch).await;

    ensemble.node(0).pause();
    let env = coordinator.env();
    env.sleep_until(grant.valid_until + grant.ttl).await;
    let error = in_time(&*coordinator, coordinator.renew(grant.lease))
        .await
        .unwrap_err();
    assert!(error.is_lease_lost(), "{error:?}");
    ensemble.node(0).resume();
    heals(&coordinator).await;
    eventually(HEAL, "the entry is gone", async || {
        coordinator
            .get_latest(&key("/mine"))
            .await
            .map(|found| found.is_none())
            .unwrap_or(false)
    })
    .await;
    assert!(coordinator.renew(grant.lease).await.unwrap_err().is_lease_lost());
    coordinator.create_persistent(&key("/seen"), "v").await.unwrap();
    loop {
        let seen = match next(&mut watch).await {
            coord_api::WatchEvent::Put(entry) => entry.key == key("/seen"),
            coord_api::WatchEvent::State(entries) | coord_api::WatchEvent::Resync(entries) => {
                entries.iter().any(|entry| entry.key == key("/seen"))
            }
            coord_api::WatchEvent::Delete { .. } => false,
        };
        if seen {
            break;
        }
    }
}

/// The server to which the connection of this session goes.
async fn server_of(ensemble: &ZkEnsemble, session: String) -> usize {
    eventually(HEAL, "a server knows the session", async || {
        for i in 0..3 {
            if ensemble
                .four_letter(i, "cons")
                .await
                .is_ok_and(|answer| answer.contains(&session))
            {
                return Some(i);
            }
        }
        None
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_follower_that_one_is_connected_to_may_stand_still() {
    let ensemble = support::ensemble(3).await;
    let leader = ensemble.leader().await.unwrap();
    let (zk, connected) = loop {
        let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
        heals(&(zk.clone() as Arc<dyn Coordinator>)).await;
        let connected = server_of(&ensemble, zk.sessions()[0].id().to_string()).await;
        if connected != leader {
            break (zk, connected);
        }
        zk.close().await.unwrap();
    };
    let coordinator: Arc<dyn Coordinator> = zk.clone();
    let kept = key("/kept");
    coordinator.create_persistent(&kept, "1").await.unwrap();
    let mut watch = coordinator.watch(&Target::Key(kept.clone())).await.unwrap();
    until_value(&mut watch, "1").await;

    ensemble.node(connected).pause();
    // Two of three are there: it has to find them by itself.
    heals(&coordinator).await;
    coordinator
        .update(&kept, "2".into(), coord_api::Expect::Any)
        .await
        .unwrap();
    until_value(&mut watch, "2").await;
    ensemble.node(connected).resume();
    ensemble.wait_ready(HEAL).await;
    heals(&coordinator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_of_three_may_be_lost_and_two_may_come_back() {
    let ensemble = support::ensemble(3).await;
    let zk = ZkCoordinator::open(config(ensemble.connect_string()), Env::system()).unwrap();
    let coordinator: Arc<dyn Coordinator> = zk.clone();
    heals(&coordinator).await;
    let first = server_of(&ensemble, zk.sessions()[0].id().to_string()).await;
    ensemble.node(first).kill();
    heals(&coordinator).await;
    // One that is dead is no reason to take the others for full.
    for _ in 0..12 {
        if let Err(error) = coordinator.grant(LONGEST_TTL).await {
            assert!(!error.is_definite(), "{error:?}");
        }
    }

    let second = (first + 1) % 3;
    let grant = eventually(HEAL, "a lease", async || coordinator.grant(LONGEST_TTL).await).await;
    ensemble.node(second).kill();
    eventually(HEAL, "the majority is missed", async || {
        coordinator.within(DEADLINE).get_latest(&key("/x")).await.is_err()
    })
    .await;
    calls_fail_clearly(&coordinator).await;
    // The one that is left may answer, but a renewal is a matter of the majority.
    let renewal = in_time(&*coordinator, coordinator.renew(grant.lease))
        .await
        .unwrap_err();
    assert!(renewal.is_transient() || renewal.is_lease_lost(), "{renewal:?}");
    ensemble.node(first).restart();
    ensemble.node(second).restart();
    heals(&coordinator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_follower_stands_still_for_longer_than_it_lives_is_kept_or_lost_but_never_lied_about() {
    let ensemble = support::ensemble(3).await;
    let leader = ensemble.leader().await.unwrap();
    let coordinator = open(config(ensemble.connect_string()));
    let (grant, entry, connected) = loop {
        let name = key(&format!("/kept-{}", coordinator.env().nonce()));
        let (grant, entry) = coordinator.create_with_ttl(&name, "x", LONGEST_TTL).await.unwrap();
        let session = zookeeper_client::SessionId(grant.lease.0 as i64);
        let connected = server_of(&ensemble, session.to_string()).await;
        if connected != leader {
            break (grant, entry, connected);
        }
        coordinator.revoke(grant.lease).await.unwrap();
    };
    let others: Vec<String> = (0..3)
        .filter(|i| *i != connected)
        .map(|i| ensemble.endpoints()[i].clone())
        .collect();
    let witness = open(config(others.join(",")));
    heals(&witness).await;
    let env = coordinator.env().clone();
    ensemble.node(connected).pause();
    let resume_at = env.now() + LONGEST_TTL * 3 / 2;
    let (mut valid_until, mut lost) = (grant.valid_until, false);
    while env.now() < resume_at && !lost {
        let renew_until = env.now() + grant.ttl / 4;
        match env.timeout_at(renew_until, coordinator.renew(grant.lease)).await {
            Some(Ok(renewed)) => valid_until = valid_until.max(renewed.valid_until),
            Some(Err(error)) => lost = error.is_lease_lost(),
            None => {}
        }
        let seen = witness.get_latest(&entry.key).await;
        assert!(
            env.now() >= valid_until || !matches!(seen, Ok(None)),
            "gone before {valid_until:?}"
        );
        env.sleep_until(renew_until).await;
    }
    ensemble.node(connected).resume();
    if lost {
        eventually(HEAL, "the entry goes with its lease", async || {
            witness.get_latest(&entry.key).await.is_ok_and(|seen| seen.is_none())
        })
        .await;
    } else {
        assert_eq!(
            witness.get_latest(&entry.key).await.unwrap().map(|seen| seen.created),
            Some(entry.created)
        );
        coordinator.renew(grant.lease).await.unwrap();
    }
    heals(&coordinator).await;
}

/// A follower passes on that a session was used with its next ping, and takes that with it when it dies. The servers end
/// sessions at whole ticks of the machine's clock: right after one, what is lost shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_through_a_follower_that_dies_promise_no_more_than_is_true() {
    const TICK: Duration = Duration::from_secs(1);
    const TTL: Duration = Duration::from_secs(4);
    const LEASES: u32 = 16;
    const SPREAD: Duration = Duration::from_millis(150);
    let ensemble = ZkEnsemble::start(ZkOptions {
        nodes: 3,
        tick: TICK,
        ..ZkOptions::default()
    })
    .await;
    let follower = (ensemble.leader().await.unwrap() + 1) % 3;
    let only = |servers: Vec<String>| {
        open(ZkConfig {
            tick: TICK,
            ..config(servers.join(","))
        })
    };
    let captive = only(vec![ensemble.endpoints()[follower].clone()]);
    let witness = only(
        (0..3)
            .filter(|i| *i != follower)
            .map(|i| ensemble.endpoints()[i].clone())
            .collect(),
    );
    let folder = key("/held");
    let mut watch = witness.watch(&Target::Children(folder.clone())).await.unwrap();
    let env = captive.env();
    let mut round = 0;
    let promised = loop {
        // Each is renewed twice: more than a quarter of the ttl before a tick, and right after it.
        let seconds = (env.now().since_start() + TTL / 2).as_secs() + 1;
        let tick = coord_api::Instant::from_start(Duration::from_secs(seconds));
        let renewed = futures::future::join_all((0..LEASES).map(async |n| {
            let name = folder.child(format!("{round}-{n}")).unwrap();
            let started = env.now();
            let held = async {
                let (grant, entry) = captive.create_with_ttl(&name, "x", TTL).await?;
                captive.renew(grant.lease).await?;
                env.sleep_until(tick + SPREAD * n / LEASES).await;
                let renewed = captive.renew(grant.lease).await?;
                Ok::<_, coord_api::Error>((entry.key, renewed.valid_until))
            };
            match held.await {
                Ok(promise) => Some(promise),
                // The machine was too busy to keep it.
                Err(error) => {
                    assert!(env.now() - started >= TTL, "{error:?}");
                    None
                }
            }
        }))
        .await;
        if renewed.iter().all(Option::is_some) || round == 4 {
            break renewed.into_iter().flatten().collect::<HashMap<_, _>>();
        }
        round += 1;
    };
    assert!(!promised.is_empty(), "every round was held up");
    ensemble.node(follower).kill();
    let mut left = promised.len();
    while left > 0 {
        let event = next(&mut watch).await;
        let gone = env.now();
        let coord_api::WatchEvent::Delete { key, .. } = event else {
            continue;
        };
        // Those of a round that was held up are not looked at.
        if let Some(until) = promised.get(&key) {
            assert!(gone >= *until, "{key}: gone by {gone:?}, promised until {until:?}");
            left -= 1;
        }
    }
}
