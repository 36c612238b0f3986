//! Looks at each write at the moment of sending: who may write then, and for which cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{
    Bytes, Capabilities, Coordinator, Create, Entry, Env, Expect, Grant, Key, LeaseId, Result, Standing, Target, Watch,
};
use coord_cluster::ClusterId;

/// What was seen by all witnesses of one world.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) wrong: Vec<String>,
    /// Writes below `seeds` and of the record.
    pub(crate) writes: usize,
    /// Calls of whatever kind, renewals left out.
    pub(crate) calls: usize,
    /// Calls that make the store write, renewals included.
    pub(crate) store_writes: usize,
    /// How long each answer to `get_latest` travels.
    pub(crate) answers_take: Duration,
}

/// The coordinator of one node; `oracle` is a client that no fault touches.
#[derive(Clone)]
pub(crate) struct Witness {
    pub(crate) inner: Arc<dyn Coordinator>,
    pub(crate) oracle: Arc<dyn Coordinator>,
    pub(crate) prefix: Key,
    /// Who the node is now, and in which cluster.
    pub(crate) who: Arc<dyn Fn() -> (String, ClusterId) + Send + Sync>,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Witness")
    }
}

/// The id in a record or a seed.
pub(crate) fn cluster_in(value: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(value).ok()?;
    Some(value.get("cluster")?.as_str()?.to_owned())
}

impl Witness {
    fn call(&self) {
        self.seen.lock().unwrap().calls += 1;
    }

    fn write(&self) {
        let mut seen = self.seen.lock().unwrap();
        seen.calls += 1;
        seen.store_writes += 1;
    }

    /// Only the holder of the leader's entry writes, and only for the cluster on record.
    async fn look(&self, what: &str, key: &Key, value: Option<&[u8]>) {
        let child = |name: &str| self.prefix.child(name).unwrap();
        let (of_seeds, of_record) = (key.is_child_of(&child("seeds")), *key == child("cluster"));
        if !of_seeds && !of_record {
            return;
        }
        let record = self.oracle.get(&child("cluster")).await.unwrap();
        let leader = self.oracle.get(&child("leader")).await.unwrap();
        let (me, cluster) = (self.who)();
        let holder = leader.map_or("nobody".to_owned(), |entry| {
            let value: serde_json::Value = serde_json::from_slice(&entry.value).unwrap();
            value["name"].as_str().unwrap().to_owned()
        });
        let on_record = record.and_then(|record| cluster_in(&record.value));
        let written_for = value.and_then(cluster_in);
        let mut seen = self.seen.lock().unwrap();
        seen.writes += 1;
        let now = self.inner.env().now().since_start();
        if holder != me {
            seen.wrong.push(format!(
                "{now:?}: {me} {what} {key} while {holder} holds the leader's entry"
            ));
        }
        if of_seeds {
            // Who has left is in no cluster any more, and clears up after itself.
            let mine = (cluster != ClusterId::NONE).then(|| cluster.to_string());
            for acting in [written_for, mine].into_iter().flatten() {
                if on_record.as_ref() != Some(&acting) {
                    seen.wrong.push(format!(
                        "{now:?}: {me} {what} {key} for {acting}, on record is {on_record:?}"
                    ));
                }
            }
        }
    }
}

#[async_trait]
impl Coordinator for Witness {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        let inner = self.inner.within(deadline);
        Arc::new(Witness { inner, ..self.clone() })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.write();
        self.inner.grant(ttl).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.seen.lock().unwrap().store_writes += 1;
        self.inner.renew(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.write();
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        self.write();
        self.look("creates", &create.key, Some(&create.value)).await;
        self.inner.create(create).await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.write();
        self.look("abandons", &create.key, None).await;
        self.inner.abandon(create).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.call();
        self.inner.get(key).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.call();
        let answer = self.inner.get_latest(key).await;
        let travel = self.seen.lock().unwrap().answers_take;
        if !travel.is_zero() {
            self.inner.env().sleep(travel).await;
        }
        answer
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.call();
        self.inner.children(key).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.write();
        self.look("updates", key, Some(&value)).await;
        self.inner.update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.write();
        self.look("deletes", key, None).await;
        self.inner.delete(key, expected).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.call();
        self.inner.standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.call();
        self.inner.watch(target).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
