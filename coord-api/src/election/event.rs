use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Leader, LossReason};

/// What happens in an election.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElectionEvent {
    /// This candidate leads.
    Elected {
        /// Its fencing token.
        token: u64,
    },
    /// This candidate no longer leads.
    Unelected {
        /// The token of the leadership that ended.
        token: u64,
        /// Why.
        reason: Unelected,
    },
    /// Another leader is seen, whoever it is; `None`: nobody leads.
    Leader(Option<Leader>),
    /// Work went on although it was told to stop longer ago than
    /// [`stop_within`](crate::ElectionConfig::stop_within).
    Overran {
        /// The token that it worked under.
        token: u64,
        /// The time it had.
        stop_within: Duration,
    },
    /// A campaign or a release failed, with what the store said. The loop goes on unless it says otherwise by returning.
    Failed(Arc<str>),
}

/// Why a leadership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unelected {
    /// The session lost its lease, or could no longer count on it.
    Session(LossReason),
    /// Somebody deleted the leader's entry.
    Deleted,
    /// Somebody wrote over the leader's entry.
    Hijacked,
    /// It resigned, or its [`Leadership`](crate::Leadership) was dropped.
    Resigned,
    /// The election was closed.
    Closed,
}

impl fmt::Display for Unelected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unelected::Session(reason) => write!(f, "session lost ({reason})"),
            Unelected::Deleted => f.write_str("entry deleted by another"),
            Unelected::Hijacked => f.write_str("entry overwritten by another"),
            Unelected::Resigned => f.write_str("resigned"),
            Unelected::Closed => f.write_str("election closed"),
        }
    }
}
