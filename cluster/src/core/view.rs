use std::collections::BTreeSet;

use super::Core;
use crate::state::Snapshot;
use crate::{ClusterView, Event, Member, MemberState, MemberView, NodeId, Phase};

/// What the user was told last, so that only changes are told again.
#[derive(Default)]
pub(super) struct Facts {
    snapshot: Option<Snapshot>,
    leader: Option<NodeId>,
    unreachable: BTreeSet<NodeId>,
    converged: bool,
}

impl Core {
    /// The latest view of the cluster.
    pub fn view(&self) -> ClusterView {
        let mut view = ClusterView {
            self_node: self.me.clone(),
            phase: self.phase,
            cluster: self.cluster(),
            members: [].into(),
            leader: None,
            deputies: Vec::new(),
            converged: self.converged(),
            foreign: self.foreign.iter().copied().collect(),
        };
        if let Some(snapshot) = self.snapshot() {
            let members = snapshot.state().members();
            let derived = snapshot.derived();
            let node = |index: &usize| members[*index].node().clone();
            let member = |(index, member): (usize, &Member)| MemberView {
                node: member.node().clone(),
                state: member.state(),
                reachable: !derived.unreachable.contains(&index),
            };
            view.members = members.iter().enumerate().map(member).collect();
            view.leader = derived.leader.as_ref().map(node);
            view.deputies = derived.deputies.iter().map(node).collect();
        }
        view
    }

    /// Tells what changed since the last time.
    pub(super) fn report(&mut self) {
        let current = self.gossip.as_ref().map(|gossip| gossip.snapshot.clone());
        let digest = |snapshot: &Option<Snapshot>| snapshot.as_ref().map(|snapshot| snapshot.state().digest());
        if digest(&current) != digest(&self.facts.snapshot) {
            self.report_members(current.as_ref());
            self.report_derived(current.as_ref());
            self.facts.snapshot = current;
        }
        let converged = self.converged();
        if converged != self.facts.converged {
            self.facts.converged = converged;
            self.emit(Event::Convergence { converged });
        }
    }

    fn report_members(&mut self, current: Option<&Snapshot>) {
        let before = self.facts.snapshot.take();
        // Going over to another cluster starts a new history; there is nothing to compare.
        let before = before.filter(|old| current.is_some_and(|new| new.state().cluster() == old.state().cluster()));
        let old: &[Member] = before.as_ref().map_or(&[], |snapshot| snapshot.state().members());
        let new: &[Member] = current.map_or(&[], |snapshot| snapshot.state().members());
        let (mut i, mut j) = (0, 0);
        while i < old.len() || j < new.len() {
            let gone = i < old.len() && (j >= new.len() || old[i].node() < new[j].node());
            let came = !gone && (i >= old.len() || new[j].node() < old[i].node());
            let event = if gone {
                Some((old[i].node().clone(), Some(old[i].state()), MemberState::Removed))
            } else if came {
                Some((new[j].node().clone(), None, new[j].state()))
            } else {
                let changed = old[i].state() != new[j].state();
                changed.then(|| (new[j].node().clone(), Some(old[i].state()), new[j].state()))
            };
            if let Some((node, from, to)) = event {
                self.out.push(super::Output::Event(Event::Member { node, from, to }));
            }
            i += usize::from(!came);
            j += usize::from(!gone);
        }
    }

    fn report_derived(&mut self, current: Option<&Snapshot>) {
        let node = |snapshot: &Snapshot, index: usize| snapshot.state().members()[index].node().clone();
        let (mut leader, mut unreachable) = (None, BTreeSet::new());
        if let Some(snapshot) = current.filter(|_| self.phase == Phase::Member) {
            let derived = snapshot.derived();
            leader = derived.leader.map(|index| node(snapshot, index));
            unreachable = derived.unreachable.iter().map(|index| node(snapshot, *index)).collect();
        }
        let before = std::mem::replace(&mut self.facts.unreachable, unreachable.clone());
        for node in unreachable.difference(&before) {
            self.emit(Event::Unreachable { node: node.clone() });
        }
        for node in before.difference(&unreachable) {
            if current.is_some_and(|snapshot| snapshot.state().member(node).is_some()) {
                self.emit(Event::Reachable { node: node.clone() });
            }
        }
        if leader != self.facts.leader {
            self.facts.leader.clone_from(&leader);
            self.emit(Event::Leader { leader });
        }
    }
}
