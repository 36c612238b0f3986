use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Capabilities, Create, Entry, Env, Expect, Grant, Key, LeaseId, Result, Target, Watch};

/// The contract: what every store does for us, and what may be relied on.
///
#[doc = include_str!("contract.md")]
#[async_trait]
pub trait Coordinator: Debug + Send + Sync + 'static {
    /// The clock, randomness and tasks that this coordinator and all recipes on it share.
    fn env(&self) -> &Env;

    /// Limits and slacks of the store behind it.
    fn capabilities(&self) -> Capabilities;

    /// The same coordinator (same leases, same connection; closing one closes both) whose calls have a deadline of at
    /// most `deadline`. Only ever tighter: a longer one than the present has no effect.
    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator>;

    /// A new lease. The store may grant another ttl than asked for: [`Grant::ttl`] tells.
    async fn grant(&self, ttl: Duration) -> Result<Grant>;

    /// Extends the lease, or says [`LeaseLost`](crate::ErrorKind::LeaseLost). Success is proof: until
    /// [`Grant::valid_until`] the lease lives.
    async fn renew(&self, lease: LeaseId) -> Result<Grant>;

    /// Ends the lease; its entries vanish at once. A lease of this coordinator that has ended already is no error.
    async fn revoke(&self, lease: LeaseId) -> Result<()>;

    /// Creates an entry unless its key is taken, and its missing parents with it.
    ///
    /// Within one call it takes effect at most once, however often the driver sends it. Called again with the same
    /// [`Create`] after an unknown outcome, it finds the entry or makes it; never are there two at once. (Nothing is
    /// promised about using a `Create` again after it succeeded.)
    async fn create(&self, create: &Create) -> Result<Entry>;

    /// Gives up a create whose outcome is unknown: after `Ok`, its entry is gone if it ever was there, and a copy of the
    /// request that arrives later has no effect. To be called on the coordinator that sent the create.
    async fn abandon(&self, create: &Create) -> Result<()>;

    /// The entry, as this coordinator may see it: every write of its own, and never older than what it saw before.
    async fn get(&self, key: &Key) -> Result<Option<Entry>>;

    /// The entry, with every write that had finished anywhere when the call began. Dearer than [`get`](Self::get).
    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>>;

    /// The immediate children with their values, ordered by name; none if the key does not exist. As fresh as
    /// [`get`](Self::get).
    async fn children(&self, key: &Key) -> Result<Vec<Entry>>;

    /// Writes a new value to an existing entry, which keeps its lease and its [`created`](Entry::created).
    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry>;

    /// Deletes an entry that has no children.
    async fn delete(&self, key: &Key, expected: Expect) -> Result<()>;

    /// In one request: is this sequential entry still there, and which live sequential sibling was created immediately
    /// before it. A view that holds the entry holds every live earlier one.
    async fn standing(&self, entry: &Entry) -> Result<Standing>;

    /// The state of a key or of a key's children, and then its changes.
    async fn watch(&self, target: &Target) -> Result<Watch>;

    /// Revokes all leases, ends all watches and every later call with [`Closed`](crate::ErrorKind::Closed).
    /// Idempotent. Fails if the store could not be told within the deadline; it is closed all the same, and the leases
    /// end by their ttl.
    async fn close(&self) -> Result<()>;
}

/// Where a sequential entry stands among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The entry as it is now; `None` if it is gone (or another one has its name).
    pub own: Option<Entry>,
    /// The live sequential sibling created immediately before it; `None` if it is the lowest, or gone.
    pub predecessor: Option<Key>,
}

impl Standing {
    /// Whether the entry is there and no earlier one is.
    pub fn is_lowest(&self) -> bool {
        self.own.is_some() && self.predecessor.is_none()
    }
}
