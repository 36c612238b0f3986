//! Where a sequential entry stands.

use std::time::Duration;

use coord_api::{CoordinatorExt, Entry, Expect};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::support::{self, config, keep, key, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_entry_stands_behind_the_live_one_before_it() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let grant = coordinator.grant(Duration::from_secs(4)).await.unwrap();
    let _kept = keep(&coordinator, grant);
    let folder = key("/queue");
    // Neither a fixed name nor somebody else's znode is in the queue.
    coordinator
        .create_persistent(&folder.child("fixed").unwrap(), "x")
        .await
        .unwrap();
    let mut queue = Vec::new();
    for _ in 0..6 {
        let entry = coordinator.create_sequential(&folder, "x", grant.lease).await.unwrap();
        let standing = coordinator.standing(&entry).await.unwrap();
        assert_eq!(standing.own.as_ref(), Some(&entry));
        assert_eq!(standing.predecessor, queue.last().map(|last: &Entry| last.key.clone()));
        queue.push(entry);
    }
    assert!(queue.is_sorted_by_key(|entry| entry.created));
    coordinator.delete(&queue[2].key, Expect::Any).await.unwrap();
    let after_gap = coordinator.standing(&queue[3]).await.unwrap();
    assert_eq!(after_gap.predecessor.as_ref(), Some(&queue[1].key));
    let gone = coordinator.standing(&queue[2]).await.unwrap();
    assert_eq!((gone.own, gone.predecessor), (None, None));
    coordinator
        .delete(&queue[0].key, queue[0].version.into())
        .await
        .unwrap();
    assert!(coordinator.standing(&queue[1]).await.unwrap().is_lowest());
    // The name of one with the birth of another is neither.
    let forged = Entry {
        created: queue[4].created,
        ..queue[1].clone()
    };
    assert_eq!(coordinator.standing(&forged).await.unwrap().own, None);
    let error = coordinator
        .update(&queue[1].key, "y".into(), queue[4].version.into())
        .await
        .unwrap_err();
    assert!(error.is_definite(), "{error:?}");
}

/// The server cannot be brought to the end of its counter in a test, but znodes can have the names that it gives there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_sequence_has_ended_the_creation_orders() {
    let ensemble = support::ensemble(1).await;
    let coordinator = open(config(ensemble.connect_string()));
    let raw = Client::connect(&ensemble.connect_string()).await.unwrap();
    let node = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw.create("/worn", b"", &node).await.unwrap();
    let mut queue: Vec<Entry> = Vec::new();
    // Neither the nonces nor the numbers are in the order of creation.
    for (nonce, number) in [
        (5, 2_147_483_646),
        (9, 2_147_483_647),
        (1, 2_147_483_647),
        (4, 2_147_483_647),
    ] {
        let name = format!("/worn/~{nonce:032x}-{number}");
        raw.create(&name, b"x", &node).await.unwrap();
        queue.push(coordinator.get_latest(&key(&name)).await.unwrap().unwrap());
    }
    for (n, entry) in queue.iter().enumerate() {
        let standing = coordinator.standing(entry).await.unwrap();
        assert_eq!(standing.own.as_ref(), Some(entry));
        let before = n.checked_sub(1).map(|before| queue[before].key.clone());
        assert_eq!(standing.predecessor, before, "the one at {n}");
    }
}
