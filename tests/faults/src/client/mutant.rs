//! Drivers that are wrong in one way, as a wrapper around a right one: the checkers must find each of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{
    Bytes, Capabilities, Coordinator, Create, Entry, Env, Error, Expect, Grant, Key, LeaseId, Operation, Result,
    Standing, Target, Watch, WatchEvent, driver,
};
use serde::{Deserialize, Serialize};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// A write whose outcome is unknown is sent again, a create under another nonce.
    RetryOfSentWrite,
    /// A lease is believed for a ttl from when its answer is looked at, by a process that is slow to look.
    DeadlineFromAnswer,
    /// A watch hands on changes only, and no `Resync`.
    SkippedResync,
    /// A delete takes whatever is there.
    UnguardedResign,
    /// A renewal is believed as soon as it is sent.
    RenewalWithoutProof,
}

/// More than etcd takes to end a lease after its time, also on a busy machine.
const LOOKS_LATE: Duration = Duration::from_secs(3);

/// The coordinator beneath, seen wrongly.
#[derive(Debug, Clone)]
pub(super) struct Wrong {
    inner: Arc<dyn Coordinator>,
    mutant: Mutant,
    ttl: Arc<std::sync::Mutex<Duration>>,
}

impl Wrong {
    pub(super) fn new(inner: Arc<dyn Coordinator>, mutant: Mutant) -> Wrong {
        let ttl = Arc::default();
        Wrong { inner, mutant, ttl }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    fn ttl(&self) -> std::sync::MutexGuard<'_, Duration> {
        self.ttl.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn believed(&self, mut grant: Grant) -> Grant {
        if self.is(Mutant::DeadlineFromAnswer) {
            grant.valid_until = self.env().now() + grant.ttl;
        }
        *self.ttl() = grant.ttl;
        grant
    }

    fn sends_again<T>(&self, result: &Result<T>) -> bool {
        self.is(Mutant::RetryOfSentWrite) && matches!(result, Err(error) if error.is_unknown())
    }
}

#[async_trait]
impl Coordinator for Wrong {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(Wrong {
            inner: self.inner.within(deadline),
            ..self.clone()
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.inner.grant(ttl).await.map(|grant| self.believed(grant))
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        if self.is(Mutant::RenewalWithoutProof) {
            let (inner, ttl) = (self.inner.clone(), *self.ttl());
            let valid_until = self.env().now() + ttl;
            drop(tokio::spawn(async move { inner.renew(lease).await }));
            return Ok(Grant {
                lease,
                ttl,
                valid_until,
            });
        }
        let renewed = self.inner.renew(lease).await;
        if self.is(Mutant::DeadlineFromAnswer) {
            self.env().sleep(LOOKS_LATE).await;
        }
        renewed.map(|grant| self.believed(grant))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        let made = self.inner.create(create).await;
        if self.sends_again(&made) {
            let (key, value) = (create.key.clone(), create.value.clone());
            let again = Create::new(self.env(), key, value, create.mode);
            return self.inner.create(&again).await;
        }
        made
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
        let updated = self.inner.update(key, value.clone(), expected).await;
        if self.sends_again(&updated) {
            return self.inner.update(key, value, expected).await;
        }
        updated
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        if self.is(Mutant::UnguardedResign) {
            return self.inner.delete(key, Expect::Any).await;
        }
        let deleted = self.inner.delete(key, expected).await;
        if self.sends_again(&deleted) {
            return self.inner.delete(key, expected).await;
        }
        deleted
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.inner.standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        let watch = self.inner.watch(target).await?;
        if self.is(Mutant::SkippedResync) {
            return Ok(without_resync(watch));
        }
        Ok(watch)
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

fn without_resync(mut inner: Watch) -> Watch {
    let (sender, outer) = driver::mailbox(|| ());
    drop(tokio::spawn(async move {
        while !sender.is_cancelled() {
            match inner.next().await {
                Some(Ok(WatchEvent::State(entries))) => sender.state(entries),
                Some(Ok(WatchEvent::Put(entry))) => sender.put(entry),
                Some(Ok(WatchEvent::Delete { key, created })) => sender.delete(key, created),
                Some(Ok(WatchEvent::Resync(_))) => {}
                Some(Err(error)) => sender.end(error),
                None => {
                    sender.end(Error::closed(Operation::Watch, None));
                    return;
                }
            }
        }
    }));
    outer
}
