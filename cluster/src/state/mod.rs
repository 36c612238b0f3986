//! The gossip state: what all nodes of a cluster agree on.

mod derived;
mod merge;
mod reachability;
mod seen;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub(crate) use derived::Derived;
pub use reachability::ReachabilityRow;
pub use seen::SeenSet;
pub use snapshot::Snapshot;

use crate::digest::{Digest, Kind};
use crate::{
    Address, ClusterId, Incarnation, LwwMap, Member, MemberState, NodeId, NodeKey, PartitionChange,
    PartitionChangeStatus, PartitionPath, VectorClock,
};

/// How many entries the state's vector clock keeps. Enough for all who wrote lately; the digest covers the rest.
pub const CLOCK_ENTRIES: usize = 64;

/// Where a whole cluster is going: it was told to join another one and adopts that one's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Successor {
    /// Counts decisions, so that one can be taken back: the latest holds.
    pub decision: u64,
    /// The cluster to join; the own one when the decision is to stay.
    pub cluster: ClusterId,
    /// Members of that cluster to ask, in turn.
    pub contacts: Vec<Address>,
}

impl Successor {
    /// Whether this decision takes the place of `other`. A total order, so that all nodes end with the same one.
    pub(crate) fn replaces(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|other| {
            let rank = |one: &Self| std::cmp::Reverse((one.cluster, one.contacts.clone()));
            (self.decision, rank(self)) > (other.decision, rank(other))
        })
    }
}

/// The shared state of the cluster. Each part is merged by a rule that does not depend on order or repetition, so any
/// two nodes that have seen the same updates hold the same state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Parts")]
pub struct GossipState {
    cluster: ClusterId,
    version: VectorClock<NodeKey>,
    /// Sorted by node; a member's index is its bit in a [`SeenSet`].
    members: Vec<Member>,
    /// The highest removed incarnation of each address: that one and all before it never come back.
    tombstones: BTreeMap<Address, Incarnation>,
    reachability: BTreeMap<NodeId, ReachabilityRow>,
    successor: Option<Successor>,
    meta: LwwMap<String, Vec<u8>>,
    partitions: LwwMap<PartitionPath, Vec<NodeId>>,
    pending: LwwMap<PartitionChange, PartitionChangeStatus>,
    #[serde(skip)]
    digest: Digest,
}

/// What travels: the same fields, not yet sorted, checked and hashed.
#[derive(Deserialize)]
struct Parts {
    cluster: ClusterId,
    version: VectorClock<NodeKey>,
    members: Vec<Member>,
    tombstones: BTreeMap<Address, Incarnation>,
    reachability: BTreeMap<NodeId, ReachabilityRow>,
    successor: Option<Successor>,
    meta: LwwMap<String, Vec<u8>>,
    partitions: LwwMap<PartitionPath, Vec<NodeId>>,
    pending: LwwMap<PartitionChange, PartitionChangeStatus>,
}

impl From<Parts> for GossipState {
    fn from(parts: Parts) -> Self {
        let mut state = Self {
            cluster: parts.cluster,
            version: parts.version,
            members: parts.members,
            tombstones: parts.tombstones,
            reachability: parts.reachability,
            successor: parts.successor,
            meta: parts.meta,
            partitions: parts.partitions,
            pending: parts.pending,
            digest: Digest::default(),
        };
        // A peer's bytes are not trusted to be in normal form.
        state.members.retain(|member| member.state != MemberState::Removed);
        state
            .members
            .sort_by(|a, b| (&a.node, b.state).cmp(&(&b.node, a.state)));
        state.members.dedup_by(|later, kept| later.node == kept.node);
        state.version.prune(CLOCK_ENTRIES);
        state.digest = state.digest_of_members_and_rows();
        state.drop_buried();
        state.put_earlier_lives_down();
        state.digest = state.computed_digest();
        state
    }
}

impl GossipState {
    /// The state of a new cluster without members.
    pub fn new(cluster: ClusterId) -> Self {
        Self {
            cluster,
            version: VectorClock::new(),
            members: Vec::new(),
            tombstones: BTreeMap::new(),
            reachability: BTreeMap::new(),
            successor: None,
            meta: LwwMap::default(),
            partitions: LwwMap::default(),
            pending: LwwMap::default(),
            digest: Digest::default(),
        }
    }

    /// Which cluster this is the state of.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The vector clock that orders this state among others.
    pub fn version(&self) -> &VectorClock<NodeKey> {
        &self.version
    }

    /// The fingerprint of everything but the vector clock.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The members, sorted by node.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member with this identity.
    pub fn member(&self, node: &NodeId) -> Option<&Member> {
        self.index_of(node).map(|index| &self.members[index])
    }

    /// All incarnations of one address that are members, oldest first.
    pub fn incarnations_of<'a>(&'a self, address: &'a Address) -> impl Iterator<Item = &'a Member> {
        let start = self.members.partition_point(|member| member.node.address < *address);
        self.members[start..]
            .iter()
            .take_while(move |member| member.node.address == *address)
    }

    /// The highest incarnation of `address` that is, or was, a member.
    pub fn latest_incarnation(&self, address: &Address) -> Option<Incarnation> {
        let member = self
            .incarnations_of(address)
            .last()
            .map(|member| member.node.incarnation);
        member.max(self.tombstones.get(address).copied())
    }

    /// Whether this incarnation was removed and may never come back.
    pub fn is_buried(&self, node: &NodeId) -> bool {
        self.tombstones
            .get(&node.address)
            .is_some_and(|last| *last >= node.incarnation)
    }

    /// How many addresses have a tombstone.
    pub fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Whom each observer suspects.
    pub fn reachability(&self) -> &BTreeMap<NodeId, ReachabilityRow> {
        &self.reachability
    }

    /// The cluster that this one was told to join.
    pub fn successor(&self) -> Option<&Successor> {
        self.successor
            .as_ref()
            .filter(|successor| successor.cluster != self.cluster)
    }

    /// What users have stored with the state.
    pub fn meta(&self) -> &LwwMap<String, Vec<u8>> {
        &self.meta
    }

    /// Which nodes host which partition.
    pub fn partitions(&self) -> &LwwMap<PartitionPath, Vec<NodeId>> {
        &self.partitions
    }

    /// The partition changes on their way.
    pub fn pending(&self) -> &LwwMap<PartitionChange, PartitionChangeStatus> {
        &self.pending
    }

    pub(crate) fn index_of(&self, node: &NodeId) -> Option<usize> {
        self.members.binary_search_by(|member| member.node.cmp(node)).ok()
    }

    /// Records an update by `writer`; every change below is followed by one of these.
    pub fn bump(&mut self, writer: NodeKey) {
        self.version.increment(writer);
        self.version.prune(CLOCK_ENTRIES);
    }

    /// Moves a member forward in its life, adding it when new. Going back, or un-burying, changes nothing.
    pub fn advance(&mut self, node: &NodeId, state: MemberState) -> bool {
        if state == MemberState::Removed {
            return self.bury(node.address.clone(), node.incarnation);
        }
        if self.is_buried(node) {
            return false;
        }
        match self.members.binary_search_by(|member| member.node.cmp(node)) {
            Ok(index) if self.members[index].state < state => {
                self.digest.remove(Kind::Member, &self.members[index]);
                self.members[index].state = state;
                self.digest.add(Kind::Member, &self.members[index]);
                true
            }
            Ok(_) => false,
            Err(index) => {
                let member = Member::new(node.clone(), state);
                self.digest.add(Kind::Member, &member);
                self.members.insert(index, member);
                self.put_earlier_lives_down();
                true
            }
        }
    }

    fn bury(&mut self, address: Address, incarnation: Incarnation) -> bool {
        if !self.raise_tombstone(address, incarnation) {
            return false;
        }
        self.drop_buried();
        true
    }

    fn raise_tombstone(&mut self, address: Address, incarnation: Incarnation) -> bool {
        let old = self.tombstones.get(&address).copied();
        if old >= Some(incarnation) {
            return false;
        }
        if let Some(old) = old {
            self.digest.remove(Kind::Tombstone, &(&address, old));
        }
        self.digest.add(Kind::Tombstone, &(&address, incarnation));
        self.tombstones.insert(address, incarnation);
        true
    }

    /// Replaces the set of nodes that `observer` cannot reach.
    pub fn set_suspects(&mut self, observer: &NodeId, suspects: BTreeSet<NodeId>) {
        let mut row = self.next_row(observer);
        row.suspects = suspects;
        self.put_row(observer.clone(), row);
    }

    /// Records that `accused` lives although `accuser` suspects it.
    pub fn contradict(&mut self, accused: &NodeId, accuser: &NodeId) {
        let Some(version) = self.reachability.get(accuser).map(|row| row.version) else {
            return;
        };
        let mut row = self.next_row(accused);
        row.contradicts.insert(accuser.clone(), version);
        self.put_row(accused.clone(), row);
    }

    /// Whether `accused` has contradicted what `accuser` says about it at present.
    pub(crate) fn is_contradicted(&self, accused: &NodeId, accuser: &NodeId) -> bool {
        let answered = self
            .reachability
            .get(accused)
            .and_then(|row| row.contradicts.get(accuser));
        answered.is_some() && answered == self.reachability.get(accuser).map(|row| &row.version)
    }

    /// The next version of an observer's row, without answers to rows that have changed since.
    fn next_row(&self, observer: &NodeId) -> ReachabilityRow {
        let mut row = self.reachability.get(observer).cloned().unwrap_or_default();
        row.version = row.version.saturating_add(1);
        row.contradicts.retain(|accuser, version| {
            self.reachability
                .get(accuser)
                .is_some_and(|row| row.version == *version)
        });
        row
    }

    fn put_row(&mut self, observer: NodeId, row: ReachabilityRow) {
        self.digest.add(Kind::Reachability, &(&observer, &row));
        if let Some(old) = self.reachability.insert(observer.clone(), row) {
            self.digest.remove(Kind::Reachability, &(&observer, &old));
        }
    }

    /// Decides to join another cluster, or with the own id to stay after all.
    pub fn decide_successor(&mut self, cluster: ClusterId, contacts: Vec<Address>) {
        let decision = match &self.successor {
            // Two nodes that are told at the same time make one decision, not two.
            Some(old) if old.cluster != self.cluster && cluster != self.cluster => old.decision,
            Some(old) => old.decision.saturating_add(1),
            None => 1,
        };
        self.set_successor(Successor {
            decision,
            cluster,
            contacts,
        });
    }

    /// Takes over a decision; the latest holds, and of two equally late ones the one with the smaller name.
    pub fn set_successor(&mut self, successor: Successor) {
        if !successor.replaces(self.successor.as_ref()) {
            return;
        }
        if let Some(old) = &self.successor {
            self.digest.remove(Kind::Successor, old);
        }
        self.digest.add(Kind::Successor, &successor);
        self.successor = Some(successor);
    }

    /// Stores or removes a value beside the members.
    pub fn set_meta(&mut self, key: String, value: Option<Vec<u8>>, writer: NodeKey) {
        self.meta.set(key, value, writer, Kind::Meta, &mut self.digest);
    }

    /// Assigns a partition to nodes, or removes it.
    pub fn set_partition(&mut self, path: PartitionPath, nodes: Option<Vec<NodeId>>, writer: NodeKey) {
        self.partitions
            .set(path, nodes, writer, Kind::Partition, &mut self.digest);
    }

    /// Schedules, completes or forgets a partition change.
    pub fn set_pending(&mut self, change: PartitionChange, status: Option<PartitionChangeStatus>, writer: NodeKey) {
        self.pending
            .set(change, status, writer, Kind::Pending, &mut self.digest);
    }

    /// One address, one life: where a later incarnation is a member, the earlier ones are surely dead. Two contacts
    /// may have let in two lives of an address without knowing of each other.
    fn put_earlier_lives_down(&mut self) {
        for index in 1..self.members.len() {
            let superseded = self.members[index].node.address == self.members[index - 1].node.address;
            let member = &mut self.members[index - 1];
            if superseded && member.state < MemberState::Down {
                self.digest.remove(Kind::Member, member);
                member.state = MemberState::Down;
                self.digest.add(Kind::Member, member);
            }
        }
    }

    /// Drops what tombstones forbid: the member, its row, and every suspicion of it.
    fn drop_buried(&mut self) {
        let Self {
            members,
            tombstones,
            reachability,
            digest,
            ..
        } = self;
        let buried = |node: &NodeId| {
            tombstones
                .get(&node.address)
                .is_some_and(|last| *last >= node.incarnation)
        };
        members.retain(|member| {
            let gone = buried(&member.node);
            if gone {
                digest.remove(Kind::Member, member);
            }
            !gone
        });
        reachability.retain(|observer, row| {
            let touched = buried(observer) || row.suspects.iter().any(buried) || row.contradicts.keys().any(buried);
            if !touched {
                return true;
            }
            digest.remove(Kind::Reachability, &(observer, &*row));
            row.suspects.retain(|suspect| !buried(suspect));
            row.contradicts.retain(|accuser, _| !buried(accuser));
            let kept = !buried(observer);
            if kept {
                digest.add(Kind::Reachability, &(observer, &*row));
            }
            kept
        });
    }

    fn digest_of_members_and_rows(&self) -> Digest {
        let mut digest = Digest::default();
        self.members.iter().for_each(|member| digest.add(Kind::Member, member));
        self.reachability
            .iter()
            .for_each(|entry| digest.add(Kind::Reachability, &entry));
        digest
    }

    /// The digest from scratch; the incremental one must always equal it.
    pub(crate) fn computed_digest(&self) -> Digest {
        let mut digest = self.digest_of_members_and_rows();
        self.tombstones
            .iter()
            .for_each(|entry| digest.add(Kind::Tombstone, &entry));
        self.successor
            .iter()
            .for_each(|successor| digest.add(Kind::Successor, successor));
        self.meta.add_to(Kind::Meta, &mut digest);
        self.partitions.add_to(Kind::Partition, &mut digest);
        self.pending.add_to(Kind::Pending, &mut digest);
        digest
    }

    /// Whether each member has taken one legal step at most on the way to `next`, and all newcomers are joining. True of
    /// every change that a node makes by itself; a merge may skip steps that others have taken.
    pub(crate) fn legal_steps_to(&self, next: &Self) -> bool {
        let legal = |member: &Member| match self.state_of(&member.node) {
            Some(before) => before == member.state || before.may_become(member.state),
            None => member.state == MemberState::Joining,
        };
        let gone = |member: &Member| {
            next.state_of(&member.node) != Some(MemberState::Removed) || member.state.may_become(MemberState::Removed)
        };
        next.members.iter().all(legal) && self.members.iter().all(gone)
    }

    #[doc(hidden)]
    pub fn digest_is_consistent(&self) -> bool {
        self.digest == self.computed_digest()
    }
}
