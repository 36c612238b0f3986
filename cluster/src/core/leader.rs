use std::collections::BTreeSet;
use std::time::Duration;

use super::{Core, Output};
use crate::state::GossipState;
use crate::{MemberState, NodeId, Phase};

/// A singleton that leaves takes three steps at once; more would be a mistake.
const STEPS_AT_ONCE: usize = 8;

impl Core {
    /// The leader's duties, all of them under convergence only.
    pub(super) fn lead(&mut self, now: Duration) {
        for _ in 0..STEPS_AT_ONCE {
            if self.phase != Phase::Member || !self.converged() || !self.acts_as_leader() {
                return;
            }
            let Some(gossip) = &self.gossip else { return };
            let steps = leader_steps(gossip.state(), self.gate.as_mut());
            if steps.is_empty() {
                return;
            }
            self.out.push(Output::Led(gossip.snapshot.clone()));
            let removed: Vec<_> = steps
                .iter()
                .filter(|(_, to)| *to == MemberState::Removed)
                .cloned()
                .collect();
            self.update(now, |state| {
                for (node, to) in &steps {
                    state.advance(node, *to);
                }
            });
            // Whoever was removed is no member any more: nobody else will tell it.
            for (node, _) in removed {
                self.send_state(node.address, false);
            }
        }
    }

    /// Whether this node is the leader; or, when nobody may lead because all who could were put down, the first of
    /// those that wait.
    fn acts_as_leader(&self) -> bool {
        let Some(gossip) = &self.gossip else { return false };
        let derived = gossip.snapshot.derived();
        match derived.leader {
            Some(leader) => leader == gossip.my_index,
            None => derived.live.contains(gossip.my_index) && !(0..gossip.my_index).any(|i| derived.live.contains(i)),
        }
    }

    /// Asks the downing rule, on the leader of the own view: unreachable nodes prevent convergence, so it cannot wait
    /// for that.
    pub(super) fn decide_downing(&mut self, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        let members = gossip.state().members();
        let unreachable: BTreeSet<NodeId> = gossip
            .snapshot
            .derived()
            .unreachable
            .iter()
            .filter(|index| members[**index].state() != MemberState::Down)
            .map(|index| members[*index].node().clone())
            .collect();
        let doomed = self.downing.decide(&unreachable, now);
        if !doomed.is_empty() && self.acts_as_leader() {
            self.down(&doomed, now);
        }
    }

    /// Marks members as down.
    pub(super) fn down(&mut self, nodes: &[NodeId], now: Duration) {
        self.update(now, |state| {
            for node in nodes
                .iter()
                .filter(|node| state.member(node).is_some())
                .cloned()
                .collect::<Vec<_>>()
            {
                state.advance(&node, MemberState::Down);
            }
        });
    }
}

fn leader_steps(state: &GossipState, gate: &mut dyn crate::ExitGate) -> Vec<(NodeId, MemberState)> {
    let mut steps = Vec::new();
    for member in state.members() {
        let to = match member.state() {
            MemberState::Joining => MemberState::Up,
            MemberState::Leaving if gate.may_exit(member.node(), state) => MemberState::Exiting,
            MemberState::Exiting | MemberState::Down => MemberState::Removed,
            MemberState::Leaving | MemberState::Up | MemberState::Removed => continue,
        };
        steps.push((member.node().clone(), to));
    }
    steps
}
