use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Coordinator, Create, CreateMode, Entry, Expect, Grant, Key, LeaseId, Result};

/// Conveniences on top of the [`Coordinator`].
#[async_trait]
pub trait CoordinatorExt: Coordinator {
    /// Creates an entry that stays until it is deleted.
    async fn create_persistent(&self, key: &Key, value: impl Into<Bytes> + Send) -> Result<Entry> {
        let create = Create::new(self.env(), key.clone(), value, CreateMode::Persistent);
        self.create(&create).await
    }

    /// Creates an entry that ends with the lease.
    async fn create_ephemeral(&self, key: &Key, value: impl Into<Bytes> + Send, lease: LeaseId) -> Result<Entry> {
        let create = Create::new(self.env(), key.clone(), value, CreateMode::Ephemeral(lease));
        self.create(&create).await
    }

    /// Creates an entry that ends with the lease, under a name of the store's choosing below `parent`.
    async fn create_sequential(&self, parent: &Key, value: impl Into<Bytes> + Send, lease: LeaseId) -> Result<Entry> {
        let create = Create::new(self.env(), parent.clone(), value, CreateMode::Sequential(lease));
        self.create(&create).await
    }

    /// Create-if-absent with a time to live, in one call: a lease of its own, and the entry under it. If the create
    /// fails, the lease is revoked, which also ends an entry that may have been made.
    async fn create_with_ttl(
        &self,
        key: &Key,
        value: impl Into<Bytes> + Send,
        ttl: Duration,
    ) -> Result<(Grant, Entry)> {
        let value = value.into();
        let grant = self.grant(ttl).await?;
        match self.create_ephemeral(key, value, grant.lease).await {
            Ok(entry) => Ok((grant, entry)),
            Err(error) => {
                // If this fails too, the lease ends by its ttl: nothing more can be done here.
                if let Err(revoke) = self.revoke(grant.lease).await {
                    tracing::debug!(lease = %grant.lease, %revoke, "lease of a failed create left to expire");
                }
                Err(error)
            }
        }
    }

    /// Deletes an entry and everything below it, deepest first. Not atomic: what is created meanwhile may survive, and
    /// then the parent does too, with [`NotEmpty`](crate::ErrorKind::NotEmpty).
    async fn delete_recursive(&self, key: &Key) -> Result<()> {
        // What had finished elsewhere before this call has to go too: from here on, lists are no older than this.
        // The root is no entry: there, any other key does it.
        let any = key.child("any").ok().filter(|_| key.is_root());
        self.get_latest(any.as_ref().unwrap_or(key)).await?;
        let mut found = vec![key.clone()];
        let mut next = 0;
        while next < found.len() {
            let children = self.children(&found[next]).await?;
            found.extend(children.into_iter().map(|entry| entry.key));
            next += 1;
        }
        for key in found.iter().skip(1).rev() {
            match self.delete(key, Expect::Any).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        if key.is_root() {
            Ok(())
        } else {
            self.delete(key, Expect::Any).await
        }
    }
}

impl<C: Coordinator + ?Sized> CoordinatorExt for C {}
