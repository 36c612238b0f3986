//! Conditional writes against delete-and-recreate, and parents that vanish under a running recipe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_api::{CoordinatorExt, ErrorKind, Expect};

use crate::support::{self, config, keep, key, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_write_never_hits_another_incarnation() {
    let ensemble = support::ensemble(1).await;
    let (a, b) = (
        open(config(ensemble.connect_string())),
        open(config(ensemble.connect_string())),
    );
    let env = a.env().clone();
    let (mut won, mut refused) = (0, 0);
    for round in 0..600 {
        let name = key(&format!("/race/{}", round % 7));
        let old = a.create_persistent(&name, "old").await.unwrap();
        // Half of the time the writer has to read first.
        if round % 2 == 0 {
            a.get(&name).await.unwrap();
        }
        let writer = async {
            env.sleep(env.random_duration(Duration::from_micros(800))).await;
            if round % 3 == 0 {
                a.delete(&name, old.version.into()).await.map(|()| old.created)
            } else {
                a.update(&name, "new".into(), old.version.into())
                    .await
                    .map(|entry| entry.created)
            }
        };
        let rival = async {
            env.sleep(env.random_duration(Duration::from_micros(800))).await;
            match b.delete(&name, Expect::Any).await {
                Ok(()) | Err(_) => {}
            }
            b.create_persistent(&name, "rival").await
        };
        let (written, rival) = futures::join!(writer, rival);
        match written {
            Ok(created) => {
                won += 1;
                assert_eq!(created, old.created, "round {round}: wrote to another incarnation");
            }
            Err(error) => {
                refused += 1;
                let expected = matches!(error.kind(), ErrorKind::VersionMismatch(_) | ErrorKind::NotFound);
                assert!(expected && error.is_definite(), "{error:?}");
            }
        }
        // The rival's entry stands untouched, whoever was first.
        let rival = rival.unwrap();
        let now = b.get_latest(&name).await.unwrap().unwrap();
        assert_eq!(
            (now.version, &now.value[..]),
            (rival.version, &b"rival"[..]),
            "round {round}"
        );
        b.delete(&name, rival.version.into()).await.unwrap();
    }
    println!("{won} won, {refused} refused, none wrong");
    assert!(won > 20 && refused > 20, "no race: {won} won, {refused} refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_may_vanish_under_whoever_uses_them() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string() + "/app"));
    let vandal = zookeeper_client::Client::connect(&ensemble.connect_string())
        .await
        .unwrap();
    let grant = coordinator.grant(Duration::from_secs(4)).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let stop = AtomicBool::new(false);
    let vandalism = async {
        while !stop.load(Ordering::SeqCst) {
            for path in ["/app/a/b/c", "/app/a/b", "/app/a", "/app"] {
                let _ = vandal.delete(path, None).await;
            }
            tokio::task::yield_now().await;
        }
    };
    let work = async {
        for n in 0..100 {
            let entry = match n % 3 {
                0 => coordinator.create_sequential(&key("/a/b/c"), "x", grant.lease).await,
                1 => coordinator.create_ephemeral(&key("/a/b/e"), "x", grant.lease).await,
                _ => coordinator.create_persistent(&key("/a/b/p"), "x").await,
            };
            let entry = entry.unwrap();
            coordinator.delete(&entry.key, entry.version.into()).await.unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    };
    futures::join!(vandalism, work);
    // Even the root, and the driver's own nodes, are made again.
    let _ = coordinator.delete_recursive(&key("/a")).await;
    for guard in vandal.list_children("/app/.coord/guards").await.unwrap() {
        vandal
            .delete(&format!("/app/.coord/guards/{guard}"), None)
            .await
            .unwrap();
    }
    for path in ["/app/.coord/guards", "/app/.coord", "/app"] {
        vandal.delete(path, None).await.unwrap();
    }
    let entry = coordinator
        .create_persistent(&key("/deep/down/here"), "x")
        .await
        .unwrap();
    coordinator
        .update(&entry.key, "y".into(), entry.version.into())
        .await
        .unwrap();
    coordinator.renew(grant.lease).await.unwrap();
}

/// Some of the shared connections lead to the ensemble's leader, where ZooKeeper's `sync` waits for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_see_own_writes_whichever_servers_the_sessions_are_on() {
    let ensemble = support::ensemble(3).await;
    let clients = (0..8).map(async |n| {
        let client = open(config(ensemble.connect_string()));
        let grant = client.grant(Duration::from_secs(4)).await.unwrap();
        let _kept = keep(&client, grant);
        let dir = key(&format!("/dir{n}"));
        for round in 0..150 {
            let entry = client.create_sequential(&dir, "x", grant.lease).await.unwrap();
            let seen = client.children(&dir).await.unwrap();
            assert_eq!(
                seen,
                std::slice::from_ref(&entry),
                "client {n}, round {round}, after the create"
            );
            client.delete(&entry.key, entry.version.into()).await.unwrap();
            let seen = client.get(&entry.key).await.unwrap();
            assert_eq!(seen, None, "client {n}, round {round}, after the delete");
        }
    });
    futures::future::join_all(clients).await;
}
