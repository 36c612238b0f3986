use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coordkit::{
    Bytes, Capabilities, Coordinator, Create, Entry, Env, Expect, Grant, Key, LeaseId, Result, Standing, Target, Watch,
};

/// A coordinator that counts the requests of elections: everything but what keeps leases alive.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    inner: Arc<dyn Coordinator>,
    requests: Arc<AtomicU64>,
}

// === impl Counted ===

impl Counted {
    pub(super) fn new(inner: Arc<dyn Coordinator>, requests: &Arc<AtomicU64>) -> Arc<Counted> {
        let requests = requests.clone();
        Arc::new(Counted { inner, requests })
    }

    fn counted(&self) -> &Arc<dyn Coordinator> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }
}

#[async_trait]
impl Coordinator for Counted {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Counted::new(self.inner.within(deadline), &self.requests)
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
        self.counted().create(create).await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.counted().abandon(create).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.counted().get(key).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.counted().get_latest(key).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.counted().children(key).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.counted().update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.counted().delete(key, expected).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.counted().standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.counted().watch(target).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
