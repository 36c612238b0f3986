use std::collections::BTreeSet;
use std::time::Duration;

use coord_api::Instant;
use coord_cluster::{ClusterView, MemberState, NodeId};

/// Which members nobody can reach, and since when it has been exactly these.
#[derive(Debug, Default)]
pub(crate) struct Unreachable {
    nodes: BTreeSet<NodeId>,
    since: Option<Instant>,
}

// === impl Unreachable ===

impl Unreachable {
    pub(crate) fn observe(&mut self, view: &ClusterView, now: Instant) {
        let nodes: BTreeSet<NodeId> = view
            .members
            .iter()
            .filter(|member| !member.reachable && member.state != MemberState::Down)
            .filter(|member| member.node != view.self_node)
            .map(|member| member.node.clone())
            .collect();
        if nodes != self.nodes || self.since.is_none() {
            self.nodes = nodes;
            self.since = Some(now);
        }
    }

    /// All of them, once they have been the same for so long.
    pub(crate) fn stable(&self, stable: Duration, now: Instant) -> Vec<NodeId> {
        match self.due(stable) {
            Some(due) if now >= due => self.nodes.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn due(&self, stable: Duration) -> Option<Instant> {
        let since = self.since.filter(|_| !self.nodes.is_empty())?;
        Some(since + stable)
    }

    /// After a verdict: the view will show it in a moment, and no verdict is spoken twice meanwhile.
    pub(crate) fn forget(&mut self) {
        self.since = None;
    }
}
