use super::{CLOCK_ENTRIES, GossipState, ReachabilityRow};
use crate::digest::Kind;
use crate::{MemberState, NodeId};

/// Merging: commutative, associative and idempotent, because each part takes the later of two values by an order that
/// all nodes share, and tombstones are applied after everything else.
impl GossipState {
    /// Takes everything from `other` that is news.
    pub fn merge(&mut self, other: &Self) {
        self.version.merge(&other.version);
        for (address, incarnation) in &other.tombstones {
            self.raise_tombstone(address.clone(), *incarnation);
        }
        self.merge_members(other);
        for (observer, theirs) in &other.reachability {
            if !self.covers_row(observer, theirs) {
                let ours = self.reachability.get(observer);
                let row = ours.map_or_else(|| theirs.clone(), |ours| ours.merged(theirs));
                self.put_row(observer.clone(), row);
            }
        }
        if let Some(successor) = &other.successor {
            self.set_successor(successor.clone());
        }
        self.meta.merge(&other.meta, Kind::Meta, &mut self.digest);
        self.partitions
            .merge(&other.partitions, Kind::Partition, &mut self.digest);
        self.pending.merge(&other.pending, Kind::Pending, &mut self.digest);
        self.drop_buried();
        self.put_earlier_lives_down();
        self.version.prune(CLOCK_ENTRIES);
    }

    fn merge_members(&mut self, other: &Self) {
        let mut newcomers = Vec::new();
        let mut index = 0;
        for theirs in &other.members {
            while index < self.members.len() && self.members[index].node < theirs.node {
                index += 1;
            }
            match self.members.get_mut(index) {
                Some(ours) if ours.node == theirs.node => {
                    if ours.state < theirs.state {
                        self.digest.remove(Kind::Member, ours);
                        ours.state = theirs.state;
                        self.digest.add(Kind::Member, ours);
                    }
                }
                _ => newcomers.push(theirs.clone()),
            }
        }
        if newcomers.is_empty() {
            return;
        }
        for newcomer in &newcomers {
            self.digest.add(Kind::Member, newcomer);
        }
        self.members.append(&mut newcomers);
        // Two sorted runs: the stable sort merges them in linear time.
        self.members.sort_by(|a, b| a.node.cmp(&b.node));
    }

    /// Whether merging `other` into this state would change nothing but the clock.
    pub fn covers(&self, other: &Self) -> bool {
        self.digest == other.digest
            || (other
                .tombstones
                .iter()
                .all(|(address, last)| self.tombstones.get(address) >= Some(last))
                && self.covers_members(other)
                && other
                    .reachability
                    .iter()
                    .all(|(observer, row)| self.covers_row(observer, row))
                && other
                    .successor
                    .as_ref()
                    .is_none_or(|theirs| !theirs.replaces(self.successor.as_ref()))
                && self.meta.covers(&other.meta)
                && self.partitions.covers(&other.partitions)
                && self.pending.covers(&other.pending))
    }

    fn covers_members(&self, other: &Self) -> bool {
        let mut index = 0;
        other.members.iter().all(|theirs| {
            while index < self.members.len() && self.members[index].node < theirs.node {
                index += 1;
            }
            match self.members.get(index) {
                Some(ours) if ours.node == theirs.node => ours.state >= theirs.state,
                _ => self.is_buried(&theirs.node),
            }
        })
    }

    fn covers_row(&self, observer: &NodeId, theirs: &ReachabilityRow) -> bool {
        let known = |ours: &ReachabilityRow| {
            let mut suspects = theirs.suspects.iter();
            let mut contradicts = theirs.contradicts.iter();
            suspects.all(|suspect| ours.suspects.contains(suspect) || self.is_buried(suspect))
                && contradicts.all(|(accuser, v)| ours.contradicts.get(accuser) >= Some(v) || self.is_buried(accuser))
        };
        let covers =
            |ours: &ReachabilityRow| ours.version > theirs.version || (ours.version == theirs.version && known(ours));
        self.is_buried(observer) || self.reachability.get(observer).is_some_and(covers)
    }

    /// The state of `node`, `Removed` when it is buried, `None` when it was never heard of.
    pub fn state_of(&self, node: &NodeId) -> Option<MemberState> {
        if self.is_buried(node) {
            return Some(MemberState::Removed);
        }
        self.member(node).map(|member| member.state)
    }
}
