use serde::{Deserialize, Serialize};

use crate::NodeId;

/// The path of a partition, such as `a/b/c`.
pub type PartitionPath = String;

/// A partition on its way from one node to another. The state carries these already; scheduling them is the business
/// of partitioning and handoff, which come after membership.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartitionChange {
    /// The node that hands the partition off.
    pub from: NodeId,
    /// The node that takes it over.
    pub to: NodeId,
    /// Which partition.
    pub path: PartitionPath,
}

/// How far a partition change has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartitionChangeStatus {
    /// Scheduled by the leader, not yet done.
    Awaiting,
    /// The old host has handed off.
    Complete,
}
