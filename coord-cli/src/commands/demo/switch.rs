use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coordkit::{
    Bytes, Capabilities, Coordinator, Create, Entry, Env, Error, ErrorKind, Expect, Grant, Key, LeaseId, Operation,
    Result, Standing, Target, Watch,
};

/// One node's way to the store, which can be switched off: every call fails then, renewals too. (What a running watch has
/// to tell still comes through: the way to the store is gone, not the memory of it.)
#[derive(Debug, Clone)]
pub(super) struct Switch {
    inner: Arc<dyn Coordinator>,
    off: Arc<AtomicBool>,
}

// === impl Switch ===

impl Switch {
    pub(super) fn new(inner: Arc<dyn Coordinator>) -> Switch {
        Switch {
            inner,
            off: Arc::default(),
        }
    }

    pub(super) fn off(&self) {
        self.off.store(true, Ordering::SeqCst);
    }

    pub(super) fn on(&self) {
        self.off.store(false, Ordering::SeqCst);
    }

    fn check(&self, operation: Operation, key: Option<&Key>) -> Result<()> {
        if !self.off.load(Ordering::SeqCst) {
            return Ok(());
        }
        let off = ErrorKind::Unavailable("the demo has switched it off".into());
        Err(Error::not_sent(operation, key, off))
    }
}

#[async_trait]
impl Coordinator for Switch {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        let inner = self.inner.within(deadline);
        Arc::new(Switch { inner, ..self.clone() })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.check(Operation::Grant, None)?;
        self.inner.grant(ttl).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.check(Operation::Renew, None)?;
        self.inner.renew(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.check(Operation::Revoke, None)?;
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        self.check(Operation::Create, Some(&create.key))?;
        self.inner.create(create).await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.check(Operation::Abandon, Some(&create.key))?;
        self.inner.abandon(create).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.check(Operation::Get, Some(key))?;
        self.inner.get(key).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.check(Operation::GetLatest, Some(key))?;
        self.inner.get_latest(key).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.check(Operation::Children, Some(key))?;
        self.inner.children(key).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.check(Operation::Update, Some(key))?;
        self.inner.update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.check(Operation::Delete, Some(key))?;
        self.inner.delete(key, expected).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.check(Operation::Standing, Some(&entry.key))?;
        self.inner.standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.check(Operation::Watch, Some(target.key()))?;
        self.inner.watch(target).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
