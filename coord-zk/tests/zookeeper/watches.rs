//! Watches made of one-shots.

use std::time::Duration;

use coord_api::{CoordinatorExt, Expect, Target, WatchEvent};
use coord_harness::{Proxy, ZkEnsemble, eventually};

use crate::support::{self, HEAL, config, keep, key, next, open, until_value};

async fn watches_at_the_server(ensemble: &ZkEnsemble) -> Option<usize> {
    // `wchs` counts no watches on lists of children.
    let answer = ensemble.four_letter(0, "mntr").await.ok()?;
    answer
        .lines()
        .find_map(|line| line.strip_prefix("zk_watch_count")?.trim().parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_followed_from_nothing_to_nothing_and_a_new_incarnation_shows() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let name = key("/a/b");
    let mut watch = coordinator.watch(&Target::Key(name.clone())).await.unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::State(vec![]));
    let first = coordinator.create_persistent(&name, "1").await.unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Put(first.clone()));
    let updated = coordinator
        .update(&name, "2".into(), first.version.into())
        .await
        .unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Put(updated));
    coordinator.delete(&name, Expect::Any).await.unwrap();
    let gone = WatchEvent::Delete {
        key: name.clone(),
        created: first.created,
    };
    assert_eq!(next(&mut watch).await, gone);
    let mut last = coordinator.create_persistent(&name, "3").await.unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Put(last.clone()));
    // Delete-and-recreate at once: either a deletion or the new incarnation tells.
    for _ in 0..20 {
        coordinator.delete(&name, Expect::Any).await.unwrap();
        last = coordinator.create_persistent(&name, "3").await.unwrap();
        loop {
            match next(&mut watch).await {
                WatchEvent::Put(entry) if entry == last => break,
                WatchEvent::Put(entry) => assert!(entry.created < last.created),
                WatchEvent::Delete { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_are_followed_with_their_values_across_reconnects() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let watcher = open(config(proxy.addr().to_string()));
    let writer = open(config(ensemble.connect_string()));
    let folder = key("/not/yet");
    let mut watch = watcher.watch(&Target::Children(folder.clone())).await.unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::State(vec![]));
    let grant = writer.grant(Duration::from_secs(4)).await.unwrap();
    let _kept = keep(&writer, grant);
    let mut view = std::collections::BTreeMap::new();
    for round in 0..12 {
        if round % 3 == 1 {
            proxy.reset();
        }
        if round % 3 == 2 {
            proxy.cut();
        }
        for n in 0..10 {
            let name = folder.child(format!("n{n}")).unwrap();
            match (round + n) % 4 {
                0 => drop(writer.create_ephemeral(&name, format!("{round}"), grant.lease).await),
                1 => drop(writer.update(&name, format!("{round}").into(), Expect::Any).await),
                2 => drop(writer.delete(&name, Expect::Any).await),
                _ => {
                    drop(writer.delete(&name, Expect::Any).await);
                    drop(writer.create_persistent(&name, format!("{round}")).await);
                }
            }
        }
        proxy.pass();
        let truth = writer.children(&folder).await.unwrap();
        let deadline = tokio::time::Instant::now() + HEAL;
        while view.values().cloned().collect::<Vec<_>>() != truth {
            let event = tokio::time::timeout_at(deadline, watch.next()).await;
            match event.unwrap_or_else(|_| panic!("round {round}: saw {view:?}, expected {truth:?}")) {
                Some(Ok(WatchEvent::Put(entry))) => {
                    let before = view.insert(entry.key.clone(), entry.clone());
                    assert!(before.is_none_or(|before: coord_api::Entry| before.created <= entry.created));
                }
                Some(Ok(WatchEvent::Delete { key, created })) => {
                    assert_eq!(view.remove(&key).map(|entry| entry.created), Some(created));
                }
                Some(Ok(WatchEvent::Resync(all))) => {
                    view = all.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
                }
                other => panic!("{other:?}"),
            }
        }
    }
    writer.delete_recursive(&folder).await.unwrap();
    while !view.is_empty() {
        match next(&mut watch).await {
            WatchEvent::Delete { key, .. } => drop(view.remove(&key)),
            WatchEvent::Resync(all) => view = all.into_iter().map(|entry| (entry.key.clone(), entry)).collect(),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_watch_leaves_nothing_at_the_server() {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let coordinator = open(config(proxy.addr().to_string()));
    let folder = key("/folder");
    for n in 0..20 {
        coordinator
            .create_persistent(&folder.child(format!("n{n}")).unwrap(), "x")
            .await
            .unwrap();
    }
    let mut watches = Vec::new();
    for n in 0..30 {
        watches.push(
            coordinator
                .watch(&Target::Key(folder.child(format!("n{n}")).unwrap()))
                .await
                .unwrap(),
        );
    }
    for _ in 0..2 {
        watches.push(coordinator.watch(&Target::Children(folder.clone())).await.unwrap());
    }
    for watch in &mut watches {
        next(watch).await;
    }
    // 30 keys, the folder's list; the children's values share the keys' watches.
    assert_eq!(watches_at_the_server(&ensemble).await, Some(31));
    // Dropped half-way through a registration, too.
    drop(coordinator.watch(&Target::Children(folder.clone())).await.unwrap());
    let kept = watches.remove(0);
    watches.clear();
    eventually(HEAL, "one watch left", async || {
        watches_at_the_server(&ensemble).await == Some(1)
    })
    .await;
    proxy.reset();
    let mut kept = kept;
    eventually(HEAL, "written again", async || {
        coordinator
            .update(&folder.child("n0").unwrap(), "y".into(), Expect::Any)
            .await
    })
    .await;
    until_value(&mut kept, "y").await;
    drop(kept);
    eventually(HEAL, "no watch left", async || {
        watches_at_the_server(&ensemble).await == Some(0)
    })
    .await;
}
