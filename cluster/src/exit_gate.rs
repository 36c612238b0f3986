use crate::state::GossipState;
use crate::{NodeId, PartitionChangeStatus};

/// The hook between leaving and exiting: the leader asks it whether everything has been handed off.
pub trait ExitGate: Send {
    /// Whether `node` has nothing left to hand off.
    fn may_exit(&mut self, node: &NodeId, state: &GossipState) -> bool;
}

/// A node may exit once no pending partition change waits for it. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingPending;

impl ExitGate for NothingPending {
    fn may_exit(&mut self, node: &NodeId, state: &GossipState) -> bool {
        state
            .pending()
            .iter()
            .all(|(change, status)| change.from != *node || *status == PartitionChangeStatus::Complete)
    }
}
