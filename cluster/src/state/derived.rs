use std::collections::{BTreeMap, BTreeSet};

use super::{GossipState, SeenSet};
use crate::{MemberState, NodeId, NodeKey};

/// How many successors on the ring each node watches, and so by how many each node is watched.
pub(crate) const WATCHED: usize = 5;

/// How many observers have to agree before a node counts as unreachable, when there are that many.
const VOTES: usize = 2;

/// How many members after the leader are deputies.
const DEPUTIES: usize = 3;

/// What follows from a gossip state, the same on every node that holds it.
#[derive(Debug)]
pub(crate) struct Derived {
    /// Members that are not down, by key: hashed order, so that neighbours on one machine do not watch each other.
    ring: Vec<(NodeKey, usize)>,
    /// Members on whom enough observers have given up.
    pub(crate) unreachable: BTreeSet<usize>,
    pub(crate) leader: Option<usize>,
    pub(crate) deputies: Vec<usize>,
    /// Whose sight of this state convergence needs.
    pub(crate) must_see: SeenSet,
    /// Members that are not down and not unreachable.
    pub(crate) live: SeenSet,
    pub(crate) live_count: usize,
    /// An unreachable member that is neither down nor on its way out prevents convergence.
    pub(crate) blocked: bool,
}

impl Derived {
    pub(crate) fn of(state: &GossipState) -> Self {
        let members = state.members();
        let not_down = |index: &usize| members[*index].state() != MemberState::Down;
        let mut ring: Vec<(NodeKey, usize)> = (0..members.len())
            .filter(not_down)
            .map(|index| (members[index].key, index))
            .collect();
        ring.sort_unstable();
        let unreachable = unreachable(state, &ring);
        let mut derived = Self {
            ring,
            unreachable,
            leader: None,
            deputies: Vec::new(),
            must_see: SeenSet::new(),
            live: SeenSet::new(),
            live_count: 0,
            blocked: false,
        };
        for (index, member) in members.iter().enumerate().filter(|(index, _)| not_down(index)) {
            if derived.unreachable.contains(&index) {
                // Everybody agreed on its exit before it went silent: nothing is left to ask it.
                derived.blocked |= member.state() != MemberState::Exiting;
                continue;
            }
            derived.live.insert(index);
            derived.live_count += 1;
            derived.must_see.insert(index);
            if member.state().may_lead() {
                if derived.leader.is_none() {
                    derived.leader = Some(index);
                } else if derived.deputies.len() < DEPUTIES {
                    derived.deputies.push(index);
                }
            }
        }
        derived
    }

    /// The members that the one with this key watches.
    pub(crate) fn watched_by(&self, key: NodeKey) -> impl Iterator<Item = usize> {
        let start = self.ring.partition_point(|(other, _)| *other <= key);
        let others = self.ring.len().saturating_sub(1);
        (0..WATCHED.min(others)).map(move |step| self.ring[(start + step) % self.ring.len()].1)
    }
}

/// The members on whom [`VOTES`] observers have given up, or all observers that are left when they are fewer: an
/// observer that is under suspicion itself and has no vote to give cannot hold up the verdict on others.
fn unreachable(state: &GossipState, ring: &[(NodeKey, usize)]) -> BTreeSet<usize> {
    let mut votes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (observer, row) in state.reachability() {
        let Some(observer) = voter(state, observer) else {
            continue;
        };
        for suspect in row.suspects.iter().filter_map(|suspect| state.index_of(suspect)) {
            votes.entry(suspect).or_default().insert(observer);
        }
    }
    let agreed = |(suspect, voters): (&usize, &BTreeSet<usize>)| {
        let member = &state.members()[*suspect];
        let place = ring.partition_point(|(key, _)| *key < member.key);
        let others = ring.len().saturating_sub(1);
        let observers = (1..=WATCHED.min(others)).map(|back| ring[(place + ring.len() - back) % ring.len()].1);
        let able = observers
            .filter(|observer| voters.contains(observer) || !votes.contains_key(observer))
            .count();
        (voters.len() >= VOTES.min(able.max(1))).then_some(*suspect)
    };
    votes.iter().filter_map(agreed).collect()
}

/// The observer's index, unless it was put down: then its opinion no longer counts.
fn voter(state: &GossipState, observer: &NodeId) -> Option<usize> {
    state
        .index_of(observer)
        .filter(|index| state.members()[*index].state() != MemberState::Down)
}
