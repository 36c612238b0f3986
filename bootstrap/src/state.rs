use std::fmt;
use std::time::Duration;

use coord_api::Instant;
use coord_cluster::{Address, NodeId};

use crate::Record;

/// Where a node is on its way into a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Reading what the store knows of a cluster.
    Looking {
        /// The how-manieth attempt this is, from 1. What belongs to an earlier one no longer counts.
        attempt: u64,
    },
    /// Asking a seed to be let in.
    Joining {
        /// Which attempt.
        attempt: u64,
        /// Who is asked.
        seed: Address,
    },
    /// There is no cluster to join: standing for election as the first seed.
    Electing {
        /// Which attempt.
        attempt: u64,
    },
    /// Elected: writing the record and joining itself.
    Forming {
        /// Which attempt.
        attempt: u64,
    },
    /// Nothing came of the attempt; the next one comes after a while.
    Waiting {
        /// Which attempt.
        attempt: u64,
        /// Why.
        reason: Reason,
        /// When the next one begins.
        until: Instant,
    },
    /// In the cluster.
    Member {
        /// Which one.
        record: Record,
        /// Whether this node is the valid holder of the leader's entry, and keeps the seeds.
        managing: bool,
    },
    /// Leaving gracefully.
    Leaving,
    /// The end.
    Stopped(End),
}

/// Why an attempt came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The store does not answer, or refuses; what it said.
    Store(String),
    /// There is a record that is none of ours: a person has to look.
    UnreadableRecord,
    /// Another node holds the leader's entry and is forming or keeping a cluster.
    LeaderElsewhere,
    /// There is a cluster, but no seed to ask, or none that answers.
    NoSeedAnswers,
    /// The cluster lives and lets no one in.
    Refused,
    /// There is no cluster, and this node only joins.
    NothingToJoin,
    /// This node was elected, and its time was over before it had formed a cluster.
    OutOfTime,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The node left as asked.
    Left {
        /// Whether everybody agreed before the deadline.
        graceful: bool,
    },
    /// No cluster could be joined or formed within [`give_up_after`](crate::Config::give_up_after); why the last attempt
    /// failed.
    GaveUp(Reason),
    /// The cluster node itself has stopped.
    NodeStopped,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// This node was elected and has formed a cluster.
    Formed {
        /// Which one.
        record: Record,
    },
    /// This node was let into the cluster.
    Joined {
        /// Which one.
        record: Record,
        /// By whom; `None` when it was in already.
        seed: Option<Address>,
    },
    /// This node is now the valid holder of the leader's entry.
    Managing,
    /// It no longer is.
    NotManaging {
        /// Why.
        why: String,
    },
    /// This node, the manager, changed what is advertised.
    Seeds {
        /// All that is advertised now.
        advertised: Vec<Address>,
    },
    /// This node, the manager, put members down that nobody could reach.
    Downed {
        /// Whom.
        nodes: Vec<NodeId>,
    },
    /// This node should keep the seeds, and somebody else holds the leader's entry and does not give it up: the cluster
    /// is split, or two run under one prefix. A person has to look.
    Rival {
        /// Who, as its entry says.
        holder: String,
    },
    /// Another cluster has taken the place of this one: this node leaves it and joins that as a new incarnation.
    Superseded {
        /// The one it was in.
        old: Record,
    },
    /// This node was put down while alive, or its cluster vanished: it starts over as a new incarnation.
    Expelled {
        /// The cluster it was in.
        old: Record,
    },
    /// The store failed; what it said. Told once, until it answers again.
    StoreFailed {
        /// What it said.
        error: String,
    },
    /// The store answers again.
    StoreBack,
    /// The end.
    Stopped(End),
}

// === impl State ===

impl State {
    /// The cluster, when in one.
    pub fn record(&self) -> Option<Record> {
        match self {
            State::Member { record, .. } => Some(*record),
            _ => None,
        }
    }

    /// Whether this node is the valid holder of the leader's entry.
    pub fn is_managing(&self) -> bool {
        matches!(self, State::Member { managing: true, .. })
    }

    /// Whether it has ended.
    pub fn is_stopped(&self) -> bool {
        matches!(self, State::Stopped(_))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Looking { attempt } => write!(f, "looking for a cluster, attempt {attempt}"),
            State::Joining { seed, .. } => write!(f, "asking {seed} to be let in"),
            State::Electing { .. } => f.write_str("standing for election as the first seed"),
            State::Forming { .. } => f.write_str("forming a cluster"),
            State::Waiting { reason, .. } => write!(f, "waiting: {reason}"),
            State::Member { record, .. } => write!(f, "in cluster {}", record.cluster),
            State::Leaving => f.write_str("leaving"),
            State::Stopped(end) => write!(f, "stopped: {end}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Store(error) => write!(f, "the store failed: {error}"),
            Reason::UnreadableRecord => {
                f.write_str("the cluster record is none of ours; nothing is done until a person corrects or deletes it")
            }
            Reason::LeaderElsewhere => f.write_str("another node holds the leader's entry"),
            Reason::NoSeedAnswers => f.write_str("there is a cluster, but no seed answers"),
            Reason::Refused => f.write_str("the cluster refuses this node"),
            Reason::OutOfTime => f.write_str("elected, but the time was over before a cluster was formed"),
            Reason::NothingToJoin => f.write_str("there is no cluster, and this node only joins"),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Left { graceful: true } => f.write_str("left gracefully"),
            End::Left { graceful: false } => f.write_str("left at the deadline"),
            End::GaveUp(reason) => write!(f, "gave up; {reason}"),
            End::NodeStopped => f.write_str("the cluster node has stopped"),
        }
    }
}

/// The waits between attempts: doubling, a random part of up to half taken off.
pub(crate) fn wait(
    attempts: u32,
    first: Duration,
    max: Duration,
    random: impl FnOnce(Duration) -> Duration,
) -> Duration {
    let full = first.saturating_mul(1 << attempts.min(16)).min(max);
    full - random(full / 2)
}
