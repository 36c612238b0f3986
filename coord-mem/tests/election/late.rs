//! A coordinator whose watches tell late: what happened is known to the store, and not yet to the candidate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::driver::{WatchSender, mailbox};
use coord_api::{
    Bytes, Capabilities, Coordinator, Create, Entry, Env, Expect, Grant, Key, LeaseId, Result, Standing, Target, Watch,
    WatchEvent,
};

/// The coordinator beneath, with events on their way for up to `longest`.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    inner: Arc<dyn Coordinator>,
    longest: Duration,
    on_time: Arc<AtomicBool>,
    delayed: Arc<AtomicU64>,
}

impl Late {
    pub(crate) fn new(inner: Arc<dyn Coordinator>, longest: Duration) -> Late {
        let (on_time, delayed) = Default::default();
        Late {
            inner,
            longest,
            on_time,
            delayed,
        }
    }

    /// How many events came late so far.
    pub(crate) fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::SeqCst)
    }

    /// From now on events come at once.
    pub(crate) fn be_on_time(&self) {
        self.on_time.store(true, Ordering::SeqCst);
    }

    /// Most events come at once, the others take their time; none overtakes another.
    async fn travel(&self) {
        let env = self.env();
        if !self.on_time.load(Ordering::SeqCst) && env.random_u64().is_multiple_of(4) {
            self.delayed.fetch_add(1, Ordering::SeqCst);
            env.sleep(env.random_duration(self.longest)).await;
        }
    }

    async fn relay(self, mut from: Watch, to: WatchSender) {
        while let Some(event) = from.next().await {
            self.travel().await;
            match event {
                Ok(WatchEvent::State(entries) | WatchEvent::Resync(entries)) => to.state(entries),
                Ok(WatchEvent::Put(entry)) => to.put(entry),
                Ok(WatchEvent::Delete { key, created }) => to.delete(key, created),
                Err(error) => to.end(error),
            }
        }
    }
}

#[async_trait]
impl Coordinator for Late {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(Late {
            inner: self.inner.within(deadline),
            ..self.clone()
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.inner.grant(ttl).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.inner.renew(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        self.inner.create(create).await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.inner.abandon(create).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.inner.get(key).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.inner.get_latest(key).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.inner.children(key).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.inner.update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.inner.delete(key, expected).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.inner.standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        let from = self.inner.watch(target).await?;
        // The reader owns the task that relays to it.
        let task = Arc::new(Mutex::new(None));
        let (sender, watch) = mailbox({
            let task = task.clone();
            move || drop(task.lock().unwrap_or_else(PoisonError::into_inner).take())
        });
        let relay = self.env().spawn(self.clone().relay(from, sender));
        *task.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
        Ok(watch)
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
