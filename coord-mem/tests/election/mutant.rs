//! A coordinator that misbehaves in one way, so that the recipe on it does what a wrong recipe would do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{
    Bytes, Capabilities, Coordinator, Create, CreateMode, Entry, Env, Error, ErrorKind, Expect, Grant, Instant, Key,
    LeaseId, Nonce, Operation, Result, Standing, Target, Watch,
};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Nothing: only counts.
    None,
    /// A lease is believed for a ttl from the answer.
    DeadlineFromAnswer,
    /// A lease is believed for a ttl from the sending of whatever was acknowledged, proven or not.
    AcknowledgedIsProven,
    /// A release deletes whatever is there.
    UnguardedResign,
    /// Once the predecessor is gone, it leads without looking.
    NoStandingBeforeGrant,
    /// The predecessor is the one before in the order of names.
    NameOrder,
    /// Everybody waits for the leader instead of the one before.
    WatchesTheLeader,
    /// A create of unknown outcome that is not found is tried anew under another nonce.
    SettledByLooking,
    /// What may have been created is left to itself.
    NothingAbandoned,
    /// A release that failed is taken for done.
    ReleasedOnce,
    /// The store permits one update, and no other.
    PermitsOneUpdate,
}

/// The coordinator beneath, seen wrongly.
#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    inner: Arc<dyn Coordinator>,
    mutant: Mutant,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    waited: Mutex<BTreeSet<Key>>,
    unknown: Mutex<BTreeMap<Nonce, Create>>,
    standings: AtomicUsize,
    updates: AtomicUsize,
}

impl Wrong {
    pub(crate) fn new(inner: Arc<dyn Coordinator>, mutant: Mutant) -> Wrong {
        let state = Arc::default();
        Wrong { inner, mutant, state }
    }

    /// How often the standing was asked for.
    pub(crate) fn standings(&self) -> usize {
        self.state.standings.load(Ordering::SeqCst)
    }

    fn believed(&self, mut grant: Grant, sent: Instant) -> Grant {
        match self.mutant {
            Mutant::DeadlineFromAnswer => grant.valid_until = self.env().now() + grant.ttl,
            Mutant::AcknowledgedIsProven => grant.valid_until = sent + grant.ttl,
            _ => {}
        }
        grant
    }

    async fn siblings(&self, entry: &Entry) -> Result<Vec<Entry>> {
        let mut siblings = self.inner.children(&entry.key.parent().unwrap()).await?;
        siblings.sort_by_key(|sibling| sibling.created);
        Ok(siblings)
    }

    async fn look(&self, create: &Create) -> Result<Option<Entry>> {
        let found = match create.mode {
            CreateMode::Sequential(_) => self.inner.children(&create.key).await?,
            _ => self.inner.get(&create.key).await?.into_iter().collect(),
        };
        Ok(found.into_iter().find(|entry| entry.value == create.value))
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
        let sent = self.env().now();
        self.inner.grant(ttl).await.map(|grant| self.believed(grant, sent))
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        let sent = self.env().now();
        self.inner.renew(lease).await.map(|grant| self.believed(grant, sent))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        if self.mutant != Mutant::SettledByLooking {
            return self.inner.create(create).await;
        }
        let before = self.state.unknown.lock().unwrap().get(&create.nonce).cloned();
        let mut create_now = before.clone().unwrap_or_else(|| create.clone());
        if before.is_some() {
            if let Some(found) = self.look(create).await? {
                return Ok(found);
            }
            create_now.nonce = self.env().nonce();
        }
        let made = self.inner.create(&create_now).await;
        if matches!(&made, Err(error) if error.is_unknown()) {
            self.state.unknown.lock().unwrap().insert(create.nonce, create_now);
        }
        made
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        if self.mutant == Mutant::NothingAbandoned {
            return Ok(());
        }
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
        if self.mutant == Mutant::PermitsOneUpdate && self.state.updates.fetch_add(1, Ordering::SeqCst) > 0 {
            let kind = ErrorKind::PermissionDenied("no more".into());
            return Err(Error::definite(Operation::Update, Some(key), kind));
        }
        self.inner.update(key, value, expected).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        match self.mutant {
            Mutant::UnguardedResign => self.inner.delete(key, Expect::Any).await,
            Mutant::ReleasedOnce => {
                let _ = self.inner.delete(key, expected).await;
                Ok(())
            }
            _ => self.inner.delete(key, expected).await,
        }
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.state.standings.fetch_add(1, Ordering::SeqCst);
        let waited = self.state.waited.lock().unwrap().contains(&entry.key);
        if self.mutant == Mutant::NoStandingBeforeGrant && waited {
            let own = Some(entry.clone());
            return Ok(Standing { own, predecessor: None });
        }
        let mut standing = self.inner.standing(entry).await?;
        match self.mutant {
            Mutant::NameOrder if standing.own.is_some() => {
                let siblings = self.siblings(entry).await?;
                let before = siblings.into_iter().filter(|sibling| sibling.key < entry.key);
                standing.predecessor = before.map(|sibling| sibling.key).max();
            }
            Mutant::WatchesTheLeader if standing.predecessor.is_some() => {
                standing.predecessor = self.siblings(entry).await?.first().map(|first| first.key.clone());
            }
            _ => {}
        }
        if standing.predecessor.is_some() {
            self.state.waited.lock().unwrap().insert(entry.key.clone());
        }
        Ok(standing)
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.inner.watch(target).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
