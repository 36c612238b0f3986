use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coord_api::{
    Capabilities, Coordinator, Create, Entry, Env, Error, ErrorKind, Expect, Grant, Instant, Key, LeaseId, Operation,
    Result, Standing, Target, Watch,
};

/// A coordinator that notes when what was called, and may call leases full.
#[derive(Debug, Clone)]
pub struct Spy {
    inner: Arc<dyn Coordinator>,
    notes: Arc<Mutex<Notes>>,
    /// How many entries each lease may carry.
    limit: usize,
}

#[derive(Debug, Default)]
struct Notes {
    calls: Vec<(Operation, Instant)>,
    carried: BTreeMap<LeaseId, usize>,
    /// Creates that are under way, and the most that ever were.
    creating: usize,
    most_creating: usize,
}

impl Spy {
    /// Watches over `inner`.
    pub fn new(inner: Arc<dyn Coordinator>) -> Arc<Spy> {
        Spy::with_limit(inner, usize::MAX)
    }

    /// The same, and a lease is full with so many entries.
    pub fn with_limit(inner: Arc<dyn Coordinator>, limit: usize) -> Arc<Spy> {
        let notes = Arc::default();
        Arc::new(Spy { inner, notes, limit })
    }

    /// When this was called, each time.
    pub fn calls(&self, operation: Operation) -> Vec<Instant> {
        let notes = self.notes();
        notes
            .calls
            .iter()
            .filter(|(of, _)| *of == operation)
            .map(|(_, at)| *at)
            .collect()
    }

    /// How many calls there were.
    pub fn count(&self) -> usize {
        self.notes().calls.len()
    }

    /// The most entries that any lease was made to carry.
    pub fn fullest(&self) -> usize {
        self.notes().carried.values().copied().max().unwrap_or(0)
    }

    /// The most creates that were under way at the same time.
    pub fn most_at_once(&self) -> usize {
        self.notes().most_creating
    }

    fn note(&self, operation: Operation) {
        let now = self.inner.env().now();
        self.notes().calls.push((operation, now));
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Coordinator for Spy {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(Spy {
            inner: self.inner.within(deadline),
            ..self.clone()
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.note(Operation::Grant);
        self.inner.grant(ttl).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.note(Operation::Renew);
        self.inner.renew(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.note(Operation::Revoke);
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        self.note(Operation::Create);
        let lease = create.mode.lease();
        if let Some(lease) = lease {
            let mut notes = self.notes();
            let carried = notes.carried.entry(lease).or_default();
            if *carried >= self.limit {
                let full = ErrorKind::LeaseFull(lease);
                return Err(Error::definite(Operation::Create, Some(&create.key), full));
            }
            *carried += 1;
        }
        {
            let mut notes = self.notes();
            notes.creating += 1;
            notes.most_creating = notes.most_creating.max(notes.creating);
        }
        let created = self.inner.create(create).await;
        self.notes().creating -= 1;
        if created.is_err()
            && let Some(lease) = lease
        {
            *self.notes().carried.entry(lease).or_default() -= 1;
        }
        created
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.note(Operation::Abandon);
        self.inner.abandon(create).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.note(Operation::Get);
        self.inner.get(key).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.note(Operation::GetLatest);
        self.inner.get_latest(key).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.note(Operation::Children);
        self.inner.children(key).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.note(Operation::Update);
        self.inner.update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.note(Operation::Delete);
        self.inner.delete(key, expected).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.note(Operation::Standing);
        self.inner.standing(entry).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.note(Operation::Watch);
        self.inner.watch(target).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
