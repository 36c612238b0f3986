use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something that happened in one candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// On a clock that is the same for all candidates: CLOCK_BOOTTIME for the processes of a machine.
    pub at: Duration,
    /// Which candidate.
    pub who: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It has a session and begins to contend.
    Started {
        /// The ttl that the store granted.
        ttl: Duration,
        /// How late the store may end a lease.
        slack: Duration,
    },
    /// It leads.
    Elected {
        /// The fencing token.
        token: u64,
    },
    /// It looked, and was valid.
    Valid {
        /// The fencing token.
        token: u64,
        /// Until then it is valid without another word from the store.
        until: Duration,
    },
    /// Its work is over.
    Ended {
        /// The fencing token.
        token: u64,
        /// Whether it gives the leadership back, or closes; not if it was lost.
        given_back: bool,
    },
    /// It closed everything, and ends.
    Closed,
}
