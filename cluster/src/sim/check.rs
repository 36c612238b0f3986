use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::{ClusterId, Core, Digest, Event, MemberState, NodeId, Snapshot};

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {at:?}: {what}")]
pub struct Violation {
    /// When.
    pub at: Duration,
    /// What.
    pub what: String,
}

/// Watches every step of every node and compares what nodes believe with what really happened.
#[derive(Debug, Default)]
pub struct Checker {
    /// Who really held which version.
    held: BTreeMap<(ClusterId, Digest), BTreeSet<NodeId>>,
    /// The version that each node held at its last step.
    current: BTreeMap<usize, (ClusterId, Digest)>,
    /// Leader and deputies of each converged version.
    leaders: BTreeMap<(ClusterId, Digest), (Option<NodeId>, Vec<NodeId>)>,
    /// Who was removed in the view of each node.
    buried: BTreeMap<(usize, NodeId, ClusterId), BTreeSet<NodeId>>,
    /// Who was down in any view, and so may never be alive in a converged one again.
    removed: BTreeSet<(ClusterId, NodeId)>,
    /// The nodes that were told to leave in their present life.
    leaving: BTreeSet<usize>,
    violation: Option<Violation>,
}

impl Checker {
    /// The first broken invariant.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The incarnations that were removed in any view.
    pub fn removed(&self) -> impl Iterator<Item = &NodeId> {
        self.removed.iter().map(|(_, node)| node)
    }

    fn fail(&mut self, at: Duration, what: String) {
        self.violation.get_or_insert(Violation { at, what });
    }

    pub(super) fn on_leave(&mut self, node: usize) {
        self.leaving.insert(node);
    }

    pub(super) fn on_restart(&mut self, node: usize) {
        self.leaving.remove(&node);
    }

    pub(super) fn on_event(&mut self, at: Duration, node: usize, core: &Core, event: &Event) {
        if matches!(event, Event::Reborn { .. }) && self.leaving.contains(&node) {
            self.fail(
                at,
                format!("{} came back although it was told to leave", core.self_node()),
            );
        }
        let Event::Member { node: member, from, to } = event else {
            return;
        };
        if from.is_some_and(|from| !reaches(from, *to)) {
            self.fail(
                at,
                format!("{} saw {member} go from {from:?} to {to:?}", core.self_node()),
            );
        }
        // A node that is reborn or has moved forgets its view; members vanish with it, but are not removed.
        let Some(snapshot) = core.snapshot() else { return };
        if *to == MemberState::Removed && snapshot.state().is_buried(member) {
            let view = (node, core.self_node().clone(), core.cluster());
            self.buried.entry(view).or_default().insert(member.clone());
            self.removed.insert((core.cluster(), member.clone()));
        }
    }

    /// A version that a node held for a part of a step only: it changed the state that it had just received.
    pub(super) fn on_overview(&mut self, core: &Core, digest: Digest) {
        let holders = self.held.entry((core.cluster(), digest)).or_default();
        holders.insert(core.self_node().clone());
    }

    /// Leader actions only under convergence: everybody whose sight is needed must really have held the version.
    pub(super) fn on_led(&mut self, at: Duration, core: &Core, snapshot: &Snapshot) {
        let state = snapshot.state();
        let holders = self.held.get(&(state.cluster(), state.digest()));
        let derived = snapshot.derived();
        if derived.blocked {
            self.fail(at, format!("{} led although a member is unreachable", core.self_node()));
            return;
        }
        for (index, member) in state.members().iter().enumerate() {
            let needed = derived.must_see.contains(index) && member.node().address != core.self_node().address;
            if needed && !holders.is_some_and(|holders| holders.contains(member.node())) {
                let leader = core.self_node();
                self.fail(
                    at,
                    format!("{leader} led on a version that {} has not seen", member.node()),
                );
                return;
            }
        }
    }

    pub(super) fn on_step(&mut self, at: Duration, node: usize, core: &Core) {
        let Some(snapshot) = core.snapshot() else {
            self.current.remove(&node);
            return;
        };
        let version = (core.cluster(), snapshot.state().digest());
        if self.current.get(&node) != Some(&version) {
            self.current.insert(node, version);
            self.held.entry(version).or_default().insert(core.self_node().clone());
            self.check_resurrection(at, node, core, snapshot);
        }
        if core.converged() {
            self.check_leader(at, core, version);
        }
    }

    fn check_resurrection(&mut self, at: Duration, node: usize, core: &Core, snapshot: &Snapshot) {
        let view = (node, core.self_node().clone(), core.cluster());
        let Some(buried) = self.buried.get(&view) else { return };
        let back = buried
            .iter()
            .find(|gone| snapshot.state().member(gone).is_some())
            .cloned();
        if let Some(back) = back {
            self.fail(
                at,
                format!("{back} came back from removal in the view of {}", core.self_node()),
            );
        }
    }

    fn check_leader(&mut self, at: Duration, core: &Core, version: (ClusterId, Digest)) {
        if let Some(known) = self.leaders.get(&version) {
            // Comparing is cheap only when it is rare: once per node and version is enough, and the digest is the key.
            let view = core.view();
            if *known != (view.leader, view.deputies) {
                self.fail(
                    at,
                    format!("{} names another leader for the same version", core.self_node()),
                );
            }
            return;
        }
        let view = core.view();
        self.leaders.insert(version, (view.leader, view.deputies));
    }
}

/// Whether legal steps lead from one state to the other; a node that was away sees only the end of a longer way.
fn reaches(from: MemberState, to: MemberState) -> bool {
    use MemberState::{Down, Exiting, Joining, Leaving, Removed, Up};
    let all = [Joining, Up, Leaving, Exiting, Down, Removed];
    from != to && (from.may_become(to) || all.iter().any(|next| from.may_become(*next) && reaches(*next, to)))
}
