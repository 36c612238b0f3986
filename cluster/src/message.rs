use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::state::{SeenSet, Snapshot, Successor};
use crate::{Address, ClusterId, Incarnation, NodeId, NodeKey, VectorClock};

/// A message with its sender, receiver and cluster: what the transport carries and authenticates.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Who sends.
    pub from: NodeId,
    /// Where to.
    pub to: Address,
    /// The sender's cluster, [`ClusterId::NONE`] while it has none.
    pub cluster: ClusterId,
    /// The message itself.
    pub message: Message,
}

/// What nodes say to each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Message {
    /// "Are you there?", meant for one incarnation.
    Ping {
        /// The incarnation that is asked.
        whom: Incarnation,
    },
    /// "I am."
    Pong,
    /// The first step of a gossip exchange: versions only.
    Overview(Overview),
    /// The receiver's state is older: "send me yours."
    Request,
    /// A whole state, to a node that lacks it.
    State {
        /// The state.
        snapshot: Snapshot,
        /// Who has seen it.
        seen: SeenSet,
        /// Whether the sender asks for the merged state back, because neither of the two is newer.
        answer: bool,
    },
    /// "Let me in."
    Join {
        /// The only cluster that will do, or [`ClusterId::NONE`] for any.
        expected: ClusterId,
    },
    /// The answer to a join: the state with the newcomer in it.
    Welcome {
        /// The state.
        snapshot: Snapshot,
    },
    /// The other answer to a join.
    Refused(Refusal),
    /// "Which cluster are you in?"
    Identify,
    /// The answer, [`ClusterId::NONE`] for none.
    Identity {
        /// The cluster of the sender.
        cluster: ClusterId,
    },
    /// "Your incarnation is down or removed in my view."
    Gone {
        /// The highest incarnation of the receiver's address that the sender knows of.
        known: Incarnation,
        /// How strong the sender's side is, in case each side has put the other down.
        strength: Strength,
    },
    /// "My cluster, which was also yours, has gone over to another."
    Moved(Successor),
}

impl Message {
    /// The name of the variant, for metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Pong => "pong",
            Self::Overview(_) => "overview",
            Self::Request => "request",
            Self::State { .. } => "state",
            Self::Join { .. } => "join",
            Self::Welcome { .. } => "welcome",
            Self::Refused(_) => "refused",
            Self::Identify => "identify",
            Self::Identity { .. } => "identity",
            Self::Gone { .. } => "gone",
            Self::Moved(_) => "moved",
        }
    }
}

/// Which version the sender holds, and who has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The fingerprint of the state.
    pub digest: Digest,
    /// Who has seen that state.
    pub seen: SeenBy,
    /// The vector clock, left out where convergence makes it likely that the receiver holds the same state.
    pub clock: Option<VectorClock<NodeKey>>,
}

/// Who has seen a state; everybody, in a converged cluster, is one byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeenBy {
    /// Every member whose sight convergence needs.
    All,
    /// These.
    Some(SeenSet),
}

/// Why a node was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The contact is in no cluster itself.
    #[error("the contact is not a member of a cluster itself")]
    NotAMember,
    /// The contact is in another cluster than the one asked for.
    #[error("the contact is in cluster {0}, not in the one asked for")]
    OtherCluster(ClusterId),
    /// A newer or equal incarnation of the address was there before.
    #[error("incarnation {0} of this address was there already")]
    Stale(Incarnation),
    /// The cluster has as many members as it may.
    #[error("the cluster is full")]
    Full,
}

/// Compares the two sides of a cluster of which each has put the other down: the one with more live members stays, and
/// of two equal ones the one with the lower first address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strength {
    /// Live members in the sender's view.
    pub live: u64,
    /// The first live address in the sender's view.
    pub first: Address,
}

impl Strength {
    /// Whether this side stays when it meets `other`.
    pub fn prevails_over(&self, other: &Self) -> bool {
        (self.live, &other.first) > (other.live, &self.first)
    }
}
