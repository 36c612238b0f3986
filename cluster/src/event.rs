use std::sync::Arc;

use crate::{ClusterId, MemberState, NodeId, Refusal};

/// Something changed in this node's view of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// This node formed a cluster of its own.
    Formed {
        /// The new cluster.
        cluster: ClusterId,
    },
    /// This node was let into a cluster.
    Joined {
        /// The cluster.
        cluster: ClusterId,
    },
    /// No contact point let this node in; it is in no cluster, or still in the one it was in.
    JoinFailed,
    /// A contact point answered, and did not let this node in.
    Refused {
        /// Who.
        by: NodeId,
        /// Why.
        refusal: Refusal,
    },
    /// Another cluster was heard of, for the first time.
    Foreign {
        /// The other cluster.
        cluster: ClusterId,
    },
    /// The contact point to link with is in the same cluster already.
    AlreadyTogether,
    /// A member appeared, changed its state, or was removed.
    Member {
        /// Who.
        node: NodeId,
        /// Its state before; `None` when it was unknown.
        from: Option<MemberState>,
        /// Its state now.
        to: MemberState,
    },
    /// Another member leads now, or nobody.
    Leader {
        /// Who.
        leader: Option<NodeId>,
    },
    /// Enough observers cannot reach the node.
    Unreachable {
        /// Who.
        node: NodeId,
    },
    /// The node answers again.
    Reachable {
        /// Who.
        node: NodeId,
    },
    /// All nodes have seen the same state, or no longer so.
    Convergence {
        /// Whether they have.
        converged: bool,
    },
    /// This node was put down while alive and comes back as a new incarnation.
    Reborn {
        /// Who it was.
        old: NodeId,
        /// Who it is now.
        new: NodeId,
    },
    /// The whole cluster goes over to another one.
    Moving {
        /// The cluster that is left.
        from: ClusterId,
        /// The cluster that is joined.
        to: ClusterId,
    },
    /// This node has left and has stopped.
    Left {
        /// Whether everybody agreed on the exit before the deadline.
        graceful: bool,
        /// Whether nobody was left in the cluster.
        last: bool,
    },
}

/// What a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// In no cluster, and not trying to be.
    Idle,
    /// Asking contact points.
    Joining,
    /// In a cluster.
    Member,
    /// Removed by its own decision, telling the others.
    Departing,
    /// Out for good.
    Stopped,
}

/// A member as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// Who.
    pub node: NodeId,
    /// Where in its life.
    pub state: MemberState,
    /// Whether its observers can reach it.
    pub reachable: bool,
}

/// The latest view of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// This node: its address and current incarnation.
    pub self_node: NodeId,
    /// What this node is doing.
    pub phase: Phase,
    /// The cluster, [`ClusterId::NONE`] when in none.
    pub cluster: ClusterId,
    /// The members in their order.
    pub members: Arc<[MemberView]>,
    /// The first reachable member in order that may lead. Firm when `converged`.
    pub leader: Option<NodeId>,
    /// The members after the leader that serve as contact points.
    pub deputies: Vec<NodeId>,
    /// Whether all members have seen this state.
    pub converged: bool,
    /// Other clusters that were heard of while in this one: messages between clusters are dropped, but not without
    /// notice.
    pub foreign: Vec<ClusterId>,
}

impl ClusterView {
    /// This node as a member.
    pub fn self_member(&self) -> Option<&MemberView> {
        self.members.iter().find(|member| member.node == self.self_node)
    }

    /// The members that are up and reachable.
    pub fn up(&self) -> impl Iterator<Item = &MemberView> {
        self.members
            .iter()
            .filter(|member| member.state == MemberState::Up && member.reachable)
    }

    /// Whether this node leads in its own view.
    pub fn is_leader(&self) -> bool {
        self.leader.as_ref() == Some(&self.self_node)
    }
}
