use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{NodeId, NodeKey};

/// Where a member is in its life. The order of the variants is the order of life: a state only ever moves forward,
/// which is what lets two views of a member be merged by taking the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemberState {
    /// Transient state when joining a cluster.
    Joining,
    /// Normal operating state.
    Up,
    /// On its way out; its partitions are being handed off.
    Leaving,
    /// Handed off; waiting for everybody to have seen it.
    Exiting,
    /// Marked as down; only removal is left.
    Down,
    /// No longer a member: a tombstone.
    Removed,
}

impl MemberState {
    /// Whether one step may lead from this state to `next`.
    pub fn may_become(self, next: Self) -> bool {
        use MemberState::{Down, Exiting, Joining, Leaving, Removed, Up};
        matches!(
            (self, next),
            (Joining, Up | Leaving | Down)
                | (Up, Leaving | Down)
                | (Leaving, Exiting | Down)
                | (Exiting, Down | Removed)
                | (Down, Removed)
        )
    }

    /// Whether a member in this state can be the leader or a deputy.
    pub fn may_lead(self) -> bool {
        matches!(self, Self::Up | Self::Leaving | Self::Exiting)
    }
}

impl fmt::Display for MemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Up => "up",
            Self::Leaving => "leaving",
            Self::Exiting => "exiting",
            Self::Down => "down",
            Self::Removed => "removed",
        })
    }
}

/// A node in the cluster and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub(crate) node: NodeId,
    pub(crate) key: NodeKey,
    pub(crate) state: MemberState,
}

impl Member {
    pub(crate) fn new(node: NodeId, state: MemberState) -> Self {
        let key = node.key();
        Self { node, key, state }
    }

    /// Who it is.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Where it is in its life.
    pub fn state(&self) -> MemberState {
        self.state
    }
}

impl Serialize for Member {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.node, self.state).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (node, state) = <(NodeId, MemberState)>::deserialize(deserializer)?;
        Ok(Self::new(node, state))
    }
}
