use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// One observer's opinion. Only the observer writes its row, so the higher version of a row is simply the later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityRow {
    /// Counts the observer's changes of opinion.
    pub version: u64,
    /// The nodes that it watches and cannot reach.
    pub suspects: BTreeSet<NodeId>,
}
