use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use coord_api::{Coordinator, CoordinatorExt, Expect, Key, Target, WatchEvent};
use etcd_client::{Client as Etcd, EventType, PutOptions};
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client as ZooKeeper, CreateMode, EventType as ZkEvent};

/// What comes after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// A look at the own entry.
    Get,
    /// The entry that went is made again.
    Create,
}

/// The bare client of a store.
#[async_trait]
pub(crate) trait Bare: Send + Sync {
    async fn put(&self, key: &str);
    async fn delete(&self, key: &str);
    /// Watches `before`, which is there; returns when the watch is live. The future resolves when the event of its end has
    /// come and the request after it is answered.
    async fn follow(&self, before: String, own: String, then: Then) -> BoxFuture<'static, Instant>;
}

/// The least that a hand-over can be: one client deletes an entry, another hears of it and does one request more.
///
/// As many clients as there are candidates take turns, each with a connection of its own: whoever follows has waited as
/// long as a candidate has, and its connection, its threads and their caches are as cold.
pub(crate) struct Floor {
    clients: Vec<Arc<dyn Bare>>,
    following: Vec<Option<JoinHandle<Instant>>>,
    then: Then,
    name: String,
    turn: usize,
}

impl Floor {
    pub(crate) async fn open(clients: Vec<Arc<dyn Bare>>, then: Then) -> Floor {
        let mut floor = Floor {
            name: format!("/floor/{then:?}-{}", clients.len()),
            following: clients.iter().map(|_| None).collect(),
            clients,
            then,
            turn: 0,
        };
        floor.clients[0].put(&floor.entry(0)).await;
        for who in 1..floor.clients.len() {
            floor.join(who).await;
        }
        floor
    }

    pub(crate) fn size(&self) -> usize {
        self.clients.len()
    }

    fn entry(&self, who: usize) -> String {
        format!("{}/{who}", self.name)
    }

    /// As the last one.
    async fn join(&mut self, who: usize) {
        let before = (who + self.size() - 1) % self.size();
        let (own, before) = (self.entry(who), self.entry(before));
        self.clients[who].put(&own).await;
        let followed = self.clients[who].follow(before, own, self.then).await;
        self.following[who] = Some(tokio::spawn(followed));
    }

    /// From the beginning of the delete until the last answer.
    pub(crate) async fn once(&mut self) -> Duration {
        let leaves = self.turn;
        self.turn = (self.turn + 1) % self.size();
        let follower = self.following[self.turn].take().expect("it follows");
        let entry = self.entry(leaves);
        let start = Instant::now();
        let ((), end) = tokio::join!(self.clients[leaves].delete(&entry), follower);
        let took = end.expect("it followed") - start;
        self.join(leaves).await;
        took
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.following.iter().flatten().for_each(JoinHandle::abort);
    }
}

pub(crate) struct BareEtcd {
    pub(crate) client: Etcd,
    pub(crate) lease: i64,
}

impl BareEtcd {
    fn options(&self) -> Option<PutOptions> {
        Some(PutOptions::new().with_lease(self.lease))
    }
}

#[async_trait]
impl Bare for BareEtcd {
    async fn put(&self, key: &str) {
        let mut client = self.client.clone();
        client.put(key, "v", self.options()).await.expect("a put");
    }

    async fn delete(&self, key: &str) {
        self.client.clone().delete(key, None).await.expect("a delete");
    }

    async fn follow(&self, before: String, own: String, then: Then) -> BoxFuture<'static, Instant> {
        let (mut client, options) = (self.client.clone(), self.options());
        let mut watch = client.watch(before.as_str(), None).await.expect("a watch");
        let created = watch.message().await.expect("an answer").expect("an answer");
        assert!(created.created());
        // An event, so that it has caught up with the store: what is measured is not its first one.
        self.put(&before).await;
        watch.message().await.expect("an event").expect("an event");
        Box::pin(async move {
            let told = watch.message().await.expect("an event").expect("an event");
            assert_eq!(told.events()[0].event_type(), EventType::Delete);
            match then {
                Then::Get => drop(client.get(own, None).await.expect("a get")),
                Then::Create => drop(client.put(before, "v", options).await.expect("a put")),
            }
            Instant::now()
        })
    }
}

pub(crate) struct BareZooKeeper(pub(crate) ZooKeeper);

#[async_trait]
impl Bare for BareZooKeeper {
    async fn put(&self, key: &str) {
        let parent = key.rsplit_once('/').expect("a parent").0;
        let (parents, node) = (
            CreateMode::Persistent.with_acls(Acls::anyone_all()),
            CreateMode::Ephemeral.with_acls(Acls::anyone_all()),
        );
        self.0.mkdir(parent, &parents).await.expect("a parent");
        // Whatever the time before has left.
        let _ = self.0.delete(key, None).await;
        self.0.create(key, b"v", &node).await.expect("a create");
    }

    async fn delete(&self, key: &str) {
        self.0.delete(key, None).await.expect("a delete");
    }

    async fn follow(&self, before: String, own: String, then: Then) -> BoxFuture<'static, Instant> {
        let (_, _, watch) = self.0.get_and_watch_data(&before).await.expect("a watch");
        let client = self.0.clone();
        Box::pin(async move {
            assert_eq!(watch.changed().await.event_type, ZkEvent::NodeDeleted);
            let node = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
            match then {
                Then::Get => drop(client.get_data(&own).await.expect("a get")),
                Then::Create => drop(client.create(&before, b"v", &node).await.expect("a create")),
            }
            Instant::now()
        })
    }
}

/// The store in memory: there is nothing more bare.
pub(crate) struct BareMemory(pub(crate) Arc<dyn Coordinator>);

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

#[async_trait]
impl Bare for BareMemory {
    async fn put(&self, name: &str) {
        let _ = self.0.delete(&key(name), Expect::Any).await;
        self.0.create_persistent(&key(name), "v").await.expect("a create");
    }

    async fn delete(&self, name: &str) {
        self.0.delete(&key(name), Expect::Any).await.expect("a delete");
    }

    async fn follow(&self, before: String, own: String, then: Then) -> BoxFuture<'static, Instant> {
        let (client, before, own) = (self.0.clone(), key(&before), key(&own));
        let mut watch = client.watch(&Target::Key(before.clone())).await.expect("a watch");
        watch.next().await.expect("the state").expect("the state");
        Box::pin(async move {
            while !matches!(watch.next().await, Some(Ok(WatchEvent::Delete { .. }))) {}
            match then {
                Then::Get => drop(client.get(&own).await.expect("a get")),
                Then::Create => drop(client.create_persistent(&before, "v").await.expect("a create")),
            }
            Instant::now()
        })
    }
}
