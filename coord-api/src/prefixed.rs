use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    Capabilities, Coordinator, Create, Entry, Env, Error, ErrorKind, Expect, Grant, InvalidKey, Key, LeaseId,
    Operation, Result, Standing, Target, Watch,
};

/// A coordinator that sees only what lies below a key, and calls that its root.
///
/// Keys in entries, events and errors are as seen from inside. Leases are shared with the coordinator beneath, and
/// closing it closes that one.
#[derive(Debug, Clone)]
pub struct Prefixed {
    inner: Arc<dyn Coordinator>,
    prefix: Key,
}

impl Prefixed {
    /// `inner`, as seen from `prefix`.
    pub fn new(inner: Arc<dyn Coordinator>, prefix: Key) -> Prefixed {
        Prefixed { inner, prefix }
    }

    fn outer(&self, operation: Operation, key: &Key) -> Result<Key> {
        if key.is_root() {
            // The root is no entry, here as anywhere, although the prefix may be one.
            crate::driver::check_entry_key(operation, key)?;
        }
        self.outer_dir(operation, key)
    }

    fn outer_dir(&self, operation: Operation, key: &Key) -> Result<Key> {
        key.under(&self.prefix)
            .map_err(|invalid| self.invalid(operation, key, &invalid))
    }

    fn outer_target(&self, target: &Target) -> Result<Target> {
        if let Target::Key(key) = target {
            crate::driver::check_entry_key(Operation::Watch, key)?;
        }
        target.map_key(|key| self.outer_dir(Operation::Watch, key))
    }

    fn outer_create(&self, operation: Operation, create: &Create) -> Result<Create> {
        let key = match create.mode {
            crate::CreateMode::Sequential(_) => self.outer_dir(operation, &create.key)?,
            _ => self.outer(operation, &create.key)?,
        };
        Ok(Create { key, ..create.clone() })
    }

    fn invalid(&self, operation: Operation, key: &Key, invalid: &InvalidKey) -> Error {
        let rule = InvalidKey {
            key: key.to_string(),
            rule: invalid.rule,
        };
        Error::definite(operation, Some(key), ErrorKind::InvalidKey(rule))
    }

    fn inside(&self, key: &Key) -> Key {
        key.relative_to(&self.prefix).unwrap_or_else(|| key.clone())
    }

    fn entry(&self, mut entry: Entry) -> Entry {
        entry.key = self.inside(&entry.key);
        entry
    }

    fn error(&self, error: Error) -> Error {
        error.map_keys(|key| self.inside(key))
    }
}

#[async_trait]
impl Coordinator for Prefixed {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(Prefixed {
            inner: self.inner.within(deadline),
            prefix: self.prefix.clone(),
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
        let create = self.outer_create(Operation::Create, create)?;
        self.inner
            .create(&create)
            .await
            .map(|entry| self.entry(entry))
            .map_err(|error| self.error(error))
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        let create = self.outer_create(Operation::Abandon, create)?;
        self.inner.abandon(&create).await.map_err(|error| self.error(error))
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        let key = self.outer(Operation::Get, key)?;
        let found = self.inner.get(&key).await.map_err(|error| self.error(error))?;
        Ok(found.map(|entry| self.entry(entry)))
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        let key = self.outer(Operation::GetLatest, key)?;
        let found = self.inner.get_latest(&key).await.map_err(|error| self.error(error))?;
        Ok(found.map(|entry| self.entry(entry)))
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        let key = self.outer_dir(Operation::Children, key)?;
        let found = self.inner.children(&key).await.map_err(|error| self.error(error))?;
        Ok(found.into_iter().map(|entry| self.entry(entry)).collect())
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        let key = self.outer(Operation::Update, key)?;
        let updated = self.inner.update(&key, value, expected).await;
        updated
            .map(|entry| self.entry(entry))
            .map_err(|error| self.error(error))
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        let key = self.outer(Operation::Delete, key)?;
        self.inner
            .delete(&key, expected)
            .await
            .map_err(|error| self.error(error))
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        let entry = Entry {
            key: self.outer(Operation::Standing, &entry.key)?,
            ..entry.clone()
        };
        let standing = self.inner.standing(&entry).await.map_err(|error| self.error(error))?;
        Ok(Standing {
            own: standing.own.map(|entry| self.entry(entry)),
            predecessor: standing.predecessor.map(|key| self.inside(&key)),
        })
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        let target = self.outer_target(target)?;
        let watch = self.inner.watch(&target).await.map_err(|error| self.error(error))?;
        Ok(watch.relative_to(&self.prefix))
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
