use std::fmt;
use std::time::Duration;

use crate::{Instant, LeaseId, margin};

/// A live lease of a [`Session`](crate::Session).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Its name at the store.
    pub lease: LeaseId,
    /// The how-manieth of this session it is, from 1. Another epoch is another lease: what lived under the old is gone.
    pub epoch: u64,
    /// The time to live that the store granted.
    pub ttl: Duration,
    /// Until then the store surely keeps it, as far as was known when this was read. Within an epoch it only grows.
    pub valid_until: Instant,
}

/// How a [`Session`](crate::Session) is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// No lease yet: the first one is being asked for.
    Connecting {
        /// When the session was opened.
        since: Instant,
    },
    /// The lease lives and the last renewal succeeded.
    Connected(Lease),
    /// The last renewal failed; the lease still lives, and renewals are tried at a quick pace.
    Suspended {
        /// The lease, still alive.
        lease: Lease,
        /// When the first renewal failed.
        since: Instant,
    },
    /// The lease of this epoch is gone or can no longer be relied on; a new one is being asked for.
    Lost {
        /// Which epoch ended.
        epoch: u64,
        /// Why.
        reason: LossReason,
        /// When.
        since: Instant,
    },
    /// The session has ended for good.
    Closed {
        /// Why.
        why: Closure,
        /// When.
        since: Instant,
    },
}

/// Why an epoch of a [`Session`](crate::Session) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// Its time ran out although the store answered: it refused to renew.
    Expired,
    /// The store says that the lease is gone before its time: somebody ended it.
    Revoked,
    /// Its time ran out while the store could not be reached or did not answer.
    Unreachable,
    /// Its time ran out while this process did not run: the machine was suspended, the process stopped, or the clock
    /// jumped.
    ClockJumped,
    /// The session was closed.
    Closed,
}

/// Why a [`Session`](crate::Session) ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closure {
    /// [`close`](crate::Session::close) was called.
    Asked,
    /// The last handle was dropped.
    Dropped,
    /// No lease could be had within [`Backoff::limit`](crate::Backoff::limit).
    GaveUp,
    /// The coordinator beneath was closed.
    CoordinatorClosed,
}

/// The short answer for a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The lease lives and the last renewal succeeded.
    Healthy,
    /// The lease lives, but renewals fail.
    Degraded {
        /// Since then.
        since: Instant,
    },
    /// There is no lease.
    Lost {
        /// Since then.
        since: Instant,
    },
}

/// The session has ended for good: there will be no lease any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended: {why}; open a new one")]
pub struct SessionClosed {
    /// Why it ended.
    pub why: Closure,
}

// === impl Lease ===

impl Lease {
    /// When to stop relying on it: [`margin`] before [`valid_until`](Lease::valid_until). The session declares the loss
    /// at this moment, with or without word from the store.
    pub fn good_until(&self) -> Instant {
        self.valid_until - margin(self.ttl)
    }
}

// === impl SessionState ===

impl SessionState {
    /// The live lease, if there is one.
    pub fn lease(&self) -> Option<Lease> {
        match *self {
            SessionState::Connected(lease) | SessionState::Suspended { lease, .. } => Some(lease),
            _ => None,
        }
    }

    /// Whether the session has ended for good.
    pub fn is_closed(&self) -> bool {
        matches!(self, SessionState::Closed { .. })
    }

    /// The short answer.
    pub fn health(&self) -> Health {
        match *self {
            SessionState::Connected(_) => Health::Healthy,
            SessionState::Suspended { since, .. } => Health::Degraded { since },
            SessionState::Connecting { since }
            | SessionState::Lost { since, .. }
            | SessionState::Closed { since, .. } => Health::Lost { since },
        }
    }

    /// Whether the two differ in more than how far the lease was renewed.
    pub(super) fn differs(&self, other: &SessionState) -> bool {
        match (self, other) {
            (SessionState::Connected(one), SessionState::Connected(other)) => one.epoch != other.epoch,
            (SessionState::Suspended { lease: one, .. }, SessionState::Suspended { lease: other, .. }) => {
                one.epoch != other.epoch
            }
            (one, other) => one != other,
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossReason::Expired => "expired",
            LossReason::Revoked => "revoked",
            LossReason::Unreachable => "unreachable",
            LossReason::ClockJumped => "clock jumped",
            LossReason::Closed => "closed",
        })
    }
}

impl fmt::Display for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Closure::Asked => "it was closed",
            Closure::Dropped => "its last handle was dropped",
            Closure::GaveUp => "no lease could be had within the backoff's limit",
            Closure::CoordinatorClosed => "the coordinator was closed",
        })
    }
}
