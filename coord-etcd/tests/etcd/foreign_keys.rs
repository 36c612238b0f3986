//! What others put below our keys with `etcdctl`, under names that no key of ours can have.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, ErrorKind, Expect, Target, WatchEvent};

use crate::support::{SOON, client, key, nodes};

/// Two who both believe to be first are two leaders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_key_hides_no_predecessor() {
    let etcd = nodes(1).await;
    let client = client(etcd.endpoints(), SOON);
    let lease = client.grant(Duration::from_secs(60)).await.unwrap().lease;
    let queue = key("/queue");
    let first = client.create_sequential(&queue, "1", lease).await.unwrap();
    for odd in ["/queue/~odd one", "/queue/~x//y", "/queue/~\u{e4}", "/queue/~deep/er"] {
        etcd.etcdctl(&["put", odd, "x"]).await;
        let later = client.create_sequential(&queue, "2", lease).await.unwrap();
        let standing = client.standing(&later).await.unwrap();
        assert_eq!(standing.own.as_ref(), Some(&later), "{odd}");
        assert_eq!(standing.predecessor.as_ref(), Some(&first.key), "{odd}");
        client.delete(&later.key, later.version.into()).await.unwrap();
    }
    assert!(client.standing(&first).await.unwrap().is_lowest());
    // Behind odd ones only, somebody is the lowest.
    client.delete(&first.key, first.version.into()).await.unwrap();
    let last = client.create_sequential(&queue, "3", lease).await.unwrap();
    assert!(client.standing(&last).await.unwrap().is_lowest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_keys_are_not_shown_but_keep_their_parent() {
    let etcd = nodes(1).await;
    let client = client(etcd.endpoints(), SOON);
    let dir = client.create_persistent(&key("/dir"), "x").await.unwrap();
    let mut watch = client.watch(&Target::Children(dir.key.clone())).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::State(vec![]));
    etcd.etcdctl(&["put", "/dir/odd one", "x"]).await;
    etcd.etcdctl(&["put", "/dir/odd one/below", "x"]).await;
    etcd.etcdctl(&["del", "/dir/odd one/below"]).await;
    let even = client.create_persistent(&key("/dir/even"), "x").await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::Put(even.clone()));
    assert_eq!(client.children(&dir.key).await.unwrap(), std::slice::from_ref(&even));
    client.delete(&even.key, Expect::Any).await.unwrap();
    let error = client.delete(&dir.key, dir.version.into()).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::NotEmpty);
}
