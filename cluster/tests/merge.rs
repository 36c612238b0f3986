//! Properties of merging gossip states.

use std::collections::BTreeSet;

use coord_cluster::{
    Address, ClusterId, GossipState, Incarnation, MemberState, NodeId, PartitionChange, PartitionChangeStatus,
    Snapshot, Successor,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Change {
    Advance(NodeId, MemberState),
    Suspect(NodeId, BTreeSet<NodeId>),
    Meta(String, Option<Vec<u8>>),
    Partition(String, Vec<NodeId>),
    Pending(NodeId, NodeId, bool),
    Successor(u64),
    Exchange(usize),
}

fn node() -> impl Strategy<Value = NodeId> {
    (0u16..6, 1u64..3).prop_map(|(port, life)| NodeId::new(Address::new("n", port).unwrap(), Incarnation(life)))
}

fn member_state() -> impl Strategy<Value = MemberState> {
    use MemberState::{Down, Exiting, Joining, Leaving, Removed, Up};
    proptest::sample::select(vec![Joining, Joining, Up, Up, Leaving, Exiting, Down, Removed])
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (node(), member_state()).prop_map(|(node, state)| Change::Advance(node, state)),
        2 => (node(), proptest::collection::btree_set(node(), 0..3)).prop_map(|(o, s)| Change::Suspect(o, s)),
        1 => ("[ab]", proptest::option::of(proptest::collection::vec(any::<u8>(), 0..3)))
            .prop_map(|(key, value)| Change::Meta(key, value)),
        1 => ("[ab]", proptest::collection::vec(node(), 0..3)).prop_map(|(path, nodes)| Change::Partition(path, nodes)),
        1 => (node(), node(), any::<bool>()).prop_map(|(from, to, done)| Change::Pending(from, to, done)),
        1 => (1u64..5).prop_map(Change::Successor),
        3 => (0usize..3).prop_map(Change::Exchange),
    ]
}

/// Three replicas with a common past. A suspicion is written by its observer alone, as the protocol has it: here each
/// replica writes rows only for the observers whose port it owns.
fn replicas() -> impl Strategy<Value = Vec<GossipState>> {
    proptest::collection::vec((0usize..3, change()), 0..40).prop_map(|changes| {
        let mut states = vec![GossipState::new(ClusterId(7)); 3];
        for (replica, change) in changes {
            if let Change::Exchange(other) = change {
                let theirs = states[other].clone();
                states[replica].merge(&theirs);
                continue;
            }
            apply(&mut states[replica], replica, change);
        }
        states
    })
}

fn apply(state: &mut GossipState, replica: usize, change: Change) {
    let writer = NodeId::new(Address::new("w", replica as u16).unwrap(), Incarnation(1)).key();
    match change {
        Change::Advance(node, to) => {
            state.advance(&node, to);
        }
        Change::Suspect(observer, suspects) => {
            let own = usize::from(observer.address.port()) % 3 == replica;
            let suspects = suspects
                .into_iter()
                .filter(|suspect| state.member(suspect).is_some())
                .collect();
            if own && state.member(&observer).is_some() {
                state.set_suspects(&observer, suspects);
            }
        }
        Change::Meta(key, value) => state.set_meta(key, value, writer),
        Change::Partition(path, nodes) => state.set_partition(path, Some(nodes), writer),
        Change::Pending(from, to, done) => {
            let status = if done {
                PartitionChangeStatus::Complete
            } else {
                PartitionChangeStatus::Awaiting
            };
            state.set_pending(
                PartitionChange {
                    from,
                    to,
                    path: "p".into(),
                },
                Some(status),
                writer,
            );
        }
        Change::Successor(id) => state.set_successor(Successor {
            decision: id % 2,
            cluster: ClusterId(id + 4),
            contacts: vec![],
        }),
        Change::Exchange(_) => {}
    }
    state.bump(writer);
}

fn merged(a: &GossipState, b: &GossipState) -> GossipState {
    let mut merged = a.clone();
    merged.merge(b);
    merged
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn merge_is_commutative(states in replicas()) {
        prop_assert_eq!(merged(&states[0], &states[1]), merged(&states[1], &states[0]));
    }

    #[test]
    fn merge_is_associative(states in replicas()) {
        let (a, b, c) = (&states[0], &states[1], &states[2]);
        prop_assert_eq!(merged(&merged(a, b), c), merged(a, &merged(b, c)));
    }

    #[test]
    fn merge_is_idempotent(states in replicas()) {
        let both = merged(&states[0], &states[1]);
        prop_assert_eq!(merged(&both, &both), both.clone());
        prop_assert_eq!(merged(&both, &states[1]), both);
    }

    #[test]
    fn a_removed_incarnation_never_comes_back(states in replicas(), gone in node()) {
        let mut buried = states[0].clone();
        buried.advance(&gone, MemberState::Removed);
        let all = merged(&merged(&states[1], &buried), &states[2]);
        prop_assert!(all.member(&gone).is_none());
        prop_assert_eq!(all.state_of(&gone), Some(MemberState::Removed));
        prop_assert!(!all.clone().advance(&gone, MemberState::Up));
        let suspected = all.reachability().values().any(|row| row.suspects.contains(&gone));
        prop_assert!(!suspected, "nobody goes on suspecting it");
    }

    #[test]
    fn merge_never_takes_a_member_back(states in replicas()) {
        let both = merged(&states[0], &states[1]);
        for member in states[0].members().iter().chain(states[1].members()) {
            prop_assert!(both.state_of(member.node()) >= Some(member.state()));
        }
    }

    #[test]
    fn the_digest_follows_every_change(states in replicas()) {
        for state in &states {
            prop_assert!(state.digest_is_consistent());
        }
        prop_assert!(merged(&states[0], &states[1]).digest_is_consistent());
        let same = states[0].digest() == states[1].digest();
        let equal_members = states[0].members() == states[1].members();
        prop_assert!(!same || equal_members);
    }

    #[test]
    fn covering_means_that_merging_adds_nothing(states in replicas()) {
        let (a, b) = (&states[0], &states[1]);
        prop_assert_eq!(a.covers(b), merged(a, b).digest() == a.digest());
        let shared = Snapshot::new(a.clone()).merged(&Snapshot::new(b.clone()));
        prop_assert_eq!(shared.state(), &merged(a, b));
    }

    #[test]
    fn a_state_survives_its_encoding(states in replicas()) {
        let bytes = postcard::to_stdvec(&states[0]).unwrap();
        let back: GossipState = postcard::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&back, &states[0]);
    }
}
