use std::fmt;
use std::time::Duration;

use crate::Instant;

/// The name of a lease at the store (an etcd lease id, a ZooKeeper session id).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// What [`grant`](crate::Coordinator::grant) and [`renew`](crate::Coordinator::renew) promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The lease.
    pub lease: LeaseId,
    /// The time to live that the store granted, which may differ from what was asked for. All timing uses this one.
    pub ttl: Duration,
    /// Until this instant of the coordinator's clock the store surely keeps the lease, whatever happens; counted from
    /// a moment of *sending*. Clocks drift: recipes stop [`margin`] earlier.
    pub valid_until: Instant,
}

/// How much earlier than [`Grant::valid_until`] to stop relying on a lease: 2 % of its ttl, at least 100 ms.
///
/// It covers the drift between the clocks of client and store during one ttl.
pub fn margin(ttl: Duration) -> Duration {
    (ttl / 50).max(Duration::from_millis(100))
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({self})")
    }
}
