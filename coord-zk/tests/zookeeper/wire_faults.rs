//! What a wire can do, one fault after the other, and on two wires: the shared one and the leases' are the same here.

use std::time::Duration;

use coord_api::{Class, CoordinatorExt, Create, CreateMode, Expect, Key, Target};
use coord_harness::{Direction, Flow, Proxy, eventually};
use coord_zk::ZkConfig;

use crate::support::{self, HEAL, config, heals, in_time, key, open, until_value};

const DEADLINE: Duration = Duration::from_millis(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_although_the_store_cannot_be_reached() {
    // Takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let coordinator = open(ZkConfig {
        call_deadline: DEADLINE,
        ..config(silent.local_addr().unwrap().to_string())
    });
    let started = std::time::Instant::now();
    coord_conformance::bad_input_is_refused_unsent(&*coordinator).await;
    assert!(
        started.elapsed() < DEADLINE * 3,
        "only the close may wait for the store"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_of_the_wire_ends_calls_in_time_and_heals() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let coordinator = open(ZkConfig {
        call_deadline: DEADLINE,
        ..config(proxy.addr().to_string())
    });
    let watched = key("/watched");
    heals(&coordinator).await;
    coordinator.create_persistent(&watched, "start").await.unwrap();
    let mut watch = coordinator.watch(&Target::Key(watched.clone())).await.unwrap();
    until_value(&mut watch, "start").await;
    type Fault = fn(&Proxy);
    let faults: [(&str, Fault); 8] = [
        ("cut", Proxy::cut),
        ("black hole", Proxy::black_hole),
        ("answers lost", Proxy::drop_answers),
        ("requests held", Proxy::hold_requests),
        ("answers held", |proxy| proxy.set(Direction::ToClient, Flow::Hold)),
        ("slow", |proxy| proxy.delay(Duration::from_secs(2))),
        ("trickle", |proxy| proxy.trickle(1, Duration::from_millis(200))),
        ("reset", |proxy| {
            proxy.reset();
            proxy.cut();
        }),
    ];
    for (name, fault) in faults {
        println!("fault: {name}");
        let grant = coordinator.grant(Duration::from_secs(4)).await.unwrap();
        let parent = key(&format!("/seq-{}", coordinator.env().nonce()));
        let create = Create::new(
            coordinator.env(),
            parent.clone(),
            "x",
            CreateMode::Sequential(grant.lease),
        );
        fault(&proxy);
        let error = in_time(&*coordinator, coordinator.get(&watched)).await.unwrap_err();
        assert!(
            error.is_transient() && error.class() == Class::NotSent,
            "{name}: {error:?}"
        );
        let error = in_time(&*coordinator, coordinator.create(&create)).await.unwrap_err();
        assert!(error.is_transient() && !error.is_definite(), "{name}: {error:?}");
        let error = in_time(&*coordinator, coordinator.renew(grant.lease))
            .await
            .unwrap_err();
        assert!(error.is_transient() || error.is_lease_lost(), "{name}: {error:?}");
        proxy.pass();
        let settled = eventually(HEAL, "the create is settled", async || {
            match coordinator.create(&create).await {
                Err(error) if error.is_lease_lost() => Ok(0),
                other => other.map(|_| 1),
            }
        })
        .await;
        heals(&coordinator).await;
        let there = coordinator.children(&parent).await.unwrap().len();
        assert!(there <= settled, "{name}: {there} entries of one create");
        if coordinator.revoke(grant.lease).await.is_ok() {
            assert_eq!(coordinator.children(&parent).await.unwrap(), [], "{name}");
        }
        coordinator
            .update(&watched, name.to_owned().into(), coord_api::Expect::Any)
            .await
            .unwrap();
        until_value(&mut watch, name).await;
    }
    coordinator.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_calls_into_a_hole_ends_in_time_and_leaves_nothing_behind() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let coordinator = open(ZkConfig {
        call_deadline: DEADLINE,
        ..config(proxy.addr().to_string())
    });
    heals(&coordinator).await;
    proxy.cut();
    eventually(HEAL, "the cut is noticed", async || {
        let found = coordinator.within(Duration::from_millis(50)).get(&key("/x")).await;
        found.is_err_and(|error| error.to_string().contains("connection"))
    })
    .await;
    let calls = (0..2000).map(|n| {
        let coordinator = coordinator.clone();
        async move {
            let error = coordinator
                .create_persistent(&key(&format!("/crowd/{n}")), "x")
                .await
                .unwrap_err();
            assert_eq!(error.class(), Class::NotSent, "{error:?}");
        }
    });
    in_time(&*coordinator, futures::future::join_all(calls)).await;
    proxy.pass();
    heals(&coordinator).await;
    assert_eq!(coordinator.children(&key("/crowd")).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_crowd_that_was_not_answered_only_those_that_were_sent_may_happen() {
    const CROWD: usize = 1500;
    /// How many requests a session may have on their way.
    const SENT: usize = 256;
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let patient = open(ZkConfig {
        call_deadline: HEAL,
        ..config(proxy.addr().to_string())
    });
    let folder = key("/crowd");
    let names: Vec<Key> = (0..CROWD).map(|n| folder.child(n.to_string()).unwrap()).collect();
    // So that the guards of all are known, and a create is one request.
    for names in names.chunks(64) {
        let made = names.iter().map(async |name| {
            patient.create_persistent(name, "").await.unwrap();
            patient.delete(name, Expect::Any).await.unwrap();
        });
        futures::future::join_all(made).await;
    }
    let coordinator = patient.within(DEADLINE);
    proxy.hold_requests();
    let calls = names.into_iter().map(|name| {
        let coordinator = coordinator.clone();
        async move {
            let error = coordinator.create_persistent(&name, "x").await.unwrap_err();
            assert!(error.is_unknown() || error.class() == Class::NotSent, "{error:?}");
            error.is_unknown().then_some(name)
        }
    });
    let outcomes = in_time(&*coordinator, futures::future::join_all(calls)).await;
    let unknown: Vec<_> = outcomes.into_iter().flatten().collect();
    assert!(
        (1..=SENT).contains(&unknown.len()),
        "{} of unknown outcome",
        unknown.len()
    );
    proxy.pass();
    heals(&coordinator).await;
    let there = coordinator.children(&folder).await.unwrap();
    println!("{} unknown, {} happened", unknown.len(), there.len());
    for entry in there {
        assert!(
            unknown.contains(&entry.key),
            "{} was said not to have been sent",
            entry.key
        );
    }
}
