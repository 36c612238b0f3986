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
    /// Observers whose word alone has made somebody unreachable.
    pub(crate) sole_voters: BTreeSet<usize>,
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
        let verdicts = Verdicts::of(state, &ring);
        let (unreachable, sole_voters) = (verdicts.unreachable, verdicts.sole_voters);
        let mut derived = Self {
            ring,
            unreachable,
            sole_voters,
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

    /// The members that the one with this key watches: the next ones on the ring that can be reached. Passing over the
    /// unreachable lets the living watch all there is to watch, however many crash at once.
    pub(crate) fn watched_by(&self, key: NodeKey) -> impl Iterator<Item = usize> {
        let start = self.ring.partition_point(|(other, _)| *other <= key);
        let others =
            (0..self.ring.len().saturating_sub(1)).map(move |step| self.ring[(start + step) % self.ring.len()].1);
        others.filter(|index| !self.unreachable.contains(index)).take(WATCHED)
    }
}

/// The members on whom [`VOTES`] observers have given up; or all their observers that are left, when those are fewer:
/// an observer that is under suspicion itself and has no vote to give cannot hold up the verdict on others.
struct Verdicts<'a> {
    state: &'a GossipState,
    ring: &'a [(NodeKey, usize)],
    /// Who suspects whom: voters by suspect.
    votes: BTreeMap<usize, BTreeSet<usize>>,
    unreachable: BTreeSet<usize>,
    /// Observers whose word alone has decided something.
    sole_voters: BTreeSet<usize>,
}

impl<'a> Verdicts<'a> {
    fn of(state: &'a GossipState, ring: &'a [(NodeKey, usize)]) -> Self {
        let mut votes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (observer, row) in state.reachability() {
            let Some(observer) = voter(state, observer) else {
                continue;
            };
            for suspect in row.suspects.iter().filter_map(|suspect| state.index_of(suspect)) {
                votes.entry(suspect).or_default().insert(observer);
            }
        }
        let agreed = votes.iter().filter(|(_, voters)| voters.len() >= VOTES);
        let mut verdicts = Self {
            state,
            ring,
            unreachable: agreed.map(|(suspect, _)| *suspect).collect(),
            votes,
            sole_voters: BTreeSet::new(),
        };
        while verdicts.settle() {}
        verdicts
    }

    /// One round of verdicts by one voice, each on what was known before the round; says whether there were any.
    fn settle(&mut self) -> bool {
        let open = self
            .votes
            .iter()
            .filter(|(suspect, _)| !self.unreachable.contains(suspect));
        let decided: Vec<(usize, usize)> = open
            .filter_map(|(suspect, voters)| self.by_one(*suspect, voters))
            .collect();
        for (suspect, voter) in &decided {
            self.unreachable.insert(*suspect);
            self.sole_voters.insert(*voter);
        }
        !decided.is_empty()
    }

    /// Whether the only voter decides alone, since no other observer can. It does not against the word of the accused,
    /// nor when it is out of reach itself: a node that hears nobody must not speak for all.
    fn by_one(&self, suspect: usize, voters: &BTreeSet<usize>) -> Option<(usize, usize)> {
        let voter = *voters.first()?;
        if self.unreachable.contains(&voter) || self.lives(suspect) {
            return None;
        }
        let key = self.state.members()[suspect].key;
        let place = self.ring.partition_point(|(other, _)| *other < key);
        let count = self.ring.len();
        let before = (1..count).map(|back| self.ring[(place + count - back) % count].1);
        let observers = before
            .filter(|observer| !self.unreachable.contains(observer))
            .take(WATCHED);
        let others = observers.filter(|observer| *observer != voter);
        let able = others
            .filter(|other| !self.votes.contains_key(other) || self.lives(*other))
            .count();
        (able == 0).then_some((suspect, voter))
    }

    /// Whether a suspect has spoken against its only accuser.
    fn lives(&self, suspect: usize) -> bool {
        let members = self.state.members();
        self.votes.get(&suspect).is_some_and(|voters| {
            let contradicted = |voter: &usize| {
                self.state
                    .is_contradicted(&members[suspect].node, &members[*voter].node)
            };
            voters.len() < VOTES && voters.iter().any(contradicted)
        })
    }
}

/// The observer's index, unless it was put down: then its opinion no longer counts.
fn voter(state: &GossipState, observer: &NodeId) -> Option<usize> {
    state
        .index_of(observer)
        .filter(|index| state.members()[*index].state() != MemberState::Down)
}
