use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use coord_api::{Coordinator, CoordinatorExt, Expect, Key, Target, WatchEvent};
use etcd_client::{Client as Etcd, EventType, PutOptions};
use tokio::sync::oneshot;
use zookeeper_client::{Acls, Client as ZooKeeper, CreateMode, EventType as ZkEvent};

use crate::SETTLE;

const KEY: &str = "/floor/entry";
const OWN: &str = "/floor/own";

/// What comes after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// A look at the own entry.
    Get,
    /// The entry is made again.
    Create,
}

/// The least that a hand-over can be: one client deletes an entry, another hears of it and does one request more.
#[async_trait]
pub(crate) trait Floor: Send {
    /// From the beginning of the delete until the last answer.
    async fn once(&mut self, then: Then) -> Duration;
}

/// Candidates have waited for a while when a leader resigns: their connections and threads are not warm from requests of
/// a moment ago, and the floor's must not be, either.
async fn cool_down() {
    tokio::time::sleep(SETTLE).await;
}

/// Two bare clients of etcd.
pub(crate) struct EtcdFloor {
    pub(crate) leaves: Etcd,
    pub(crate) follows: Etcd,
    pub(crate) lease: i64,
}

#[async_trait]
impl Floor for EtcdFloor {
    async fn once(&mut self, then: Then) -> Duration {
        let lease = Some(PutOptions::new().with_lease(self.lease));
        self.leaves.put(KEY, "leader", lease.clone()).await.expect("a put");
        self.follows.put(OWN, "standby", lease.clone()).await.expect("a put");
        let mut watch = self.follows.watch(KEY, None).await.expect("a watch");
        // The answer to the watch itself: from here on it is live.
        let created = watch.message().await.expect("an answer").expect("an answer");
        assert!(created.created());
        // An event, so that it has caught up with the store: what is measured is not its first one.
        self.leaves.put(KEY, "leader", lease.clone()).await.expect("a put");
        watch.message().await.expect("an event").expect("an event");
        let mut follows = self.follows.clone();
        let (done, end) = oneshot::channel();
        let follower = tokio::spawn(async move {
            let told = watch.message().await.expect("an event").expect("an event");
            assert_eq!(told.events()[0].event_type(), EventType::Delete);
            match then {
                Then::Get => drop(follows.get(OWN, None).await.expect("a get")),
                Then::Create => drop(follows.put(KEY, "leader", lease).await.expect("a put")),
            }
            let _ = done.send(Instant::now());
        });
        cool_down().await;
        let start = Instant::now();
        let (deleted, end) = tokio::join!(self.leaves.delete(KEY, None), end);
        deleted.expect("a delete");
        let took = end.expect("it ended") - start;
        follower.await.expect("it ended");
        took
    }
}

/// Two bare clients of ZooKeeper.
pub(crate) struct ZkFloor {
    pub(crate) leaves: ZooKeeper,
    pub(crate) follows: ZooKeeper,
}

#[async_trait]
impl Floor for ZkFloor {
    async fn once(&mut self, then: Then) -> Duration {
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        // Whatever the time before has left.
        let _ = self.follows.delete(KEY, None).await;
        self.leaves.create(KEY, b"leader", &ephemeral).await.expect("a create");
        let _ = self.follows.create(OWN, b"standby", &ephemeral).await;
        let (_, _, watch) = self.follows.get_and_watch_data(KEY).await.expect("a watch");
        let follows = self.follows.clone();
        let (done, end) = oneshot::channel();
        let follower = tokio::spawn(async move {
            assert_eq!(watch.changed().await.event_type, ZkEvent::NodeDeleted);
            match then {
                Then::Get => drop(follows.get_data(OWN).await.expect("a get")),
                Then::Create => drop(follows.create(KEY, b"leader", &ephemeral).await.expect("a create")),
            }
            let _ = done.send(Instant::now());
        });
        cool_down().await;
        let start = Instant::now();
        let (deleted, end) = tokio::join!(self.leaves.delete(KEY, None), end);
        deleted.expect("a delete");
        let took = end.expect("it ended") - start;
        follower.await.expect("it ended");
        took
    }
}

/// Two clients of a store in memory: there is nothing more bare.
pub(crate) struct MemFloor {
    pub(crate) leaves: Arc<dyn Coordinator>,
    pub(crate) follows: Arc<dyn Coordinator>,
}

#[async_trait]
impl Floor for MemFloor {
    async fn once(&mut self, then: Then) -> Duration {
        let (key, own) = (Key::new(KEY).expect("a key"), Key::new(OWN).expect("a key"));
        let _ = self.leaves.delete(&key, Expect::Any).await;
        self.leaves.create_persistent(&key, "leader").await.expect("a create");
        let _ = self.leaves.create_persistent(&own, "standby").await;
        let mut watch = self.follows.watch(&Target::Key(key.clone())).await.expect("a watch");
        watch.next().await.expect("the state").expect("the state");
        let (follows, again) = (self.follows.clone(), key.clone());
        let (done, end) = oneshot::channel();
        let follower = tokio::spawn(async move {
            while !matches!(watch.next().await, Some(Ok(WatchEvent::Delete { .. }))) {}
            match then {
                Then::Get => drop(follows.get(&own).await.expect("a get")),
                Then::Create => drop(follows.create_persistent(&again, "leader").await.expect("a create")),
            }
            let _ = done.send(Instant::now());
        });
        cool_down().await;
        let start = Instant::now();
        let (deleted, end) = tokio::join!(self.leaves.delete(&key, Expect::Any), end);
        deleted.expect("a delete");
        let took = end.expect("it ended") - start;
        follower.await.expect("it ended");
        took
    }
}
