//! The sentences of the specification, one named test each, in simulation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_cluster::sim::{Network, Sim, wire_size};
use coord_cluster::{
    Address, ClusterId, Config, Core, Envelope, Event, ExitGate, GossipState, Incarnation, Input, MemberState, Message,
    NodeId, Output, Phase,
};

const LIMIT: Duration = Duration::from_secs(120);

fn cluster(seed: u64, nodes: usize) -> Sim {
    let mut sim = Sim::new(seed, Network::default());
    sim.check_invariants();
    sim.record_events();
    sim.add_node();
    sim.form(0);
    for node in 1..nodes {
        sim.add_node();
        sim.join(node, &[0]);
    }
    sim.run_until_converged(LIMIT).expect("the cluster forms");
    sim
}

fn state_of(sim: &Sim, viewer: usize, node: &NodeId) -> Option<MemberState> {
    sim.core(viewer)
        .snapshot()
        .and_then(|snapshot| snapshot.state().state_of(node))
}

fn fine(sim: &Sim) {
    assert_eq!(sim.violation(), None);
}

#[test]
fn a_singleton_is_up_at_once_and_leads_itself() {
    let mut sim = Sim::new(1, Network::default());
    sim.add_node();
    sim.form(0);
    let view = sim.core(0).view();
    assert!(view.converged && view.is_leader());
    assert_eq!(view.self_member().unwrap().state, MemberState::Up);
}

#[test]
fn the_leader_is_the_first_in_order_and_deputies_follow() {
    let sim = cluster(2, 7);
    let view = sim.core(5).view();
    assert_eq!(view.leader.unwrap().address, sim.address(0));
    let deputies: Vec<Address> = view.deputies.into_iter().map(|node| node.address).collect();
    assert_eq!(deputies, [sim.address(1), sim.address(2), sim.address(3)]);
}

#[test]
fn an_unreachable_node_prevents_convergence_and_leader_actions_until_it_is_down() {
    let mut sim = cluster(3, 6);
    let dead = sim.core(4).self_node().clone();
    sim.crash(4);
    sim.run_until_true(LIMIT, |sim| {
        sim.running().all(|node| sim.core(node).is_unreachable(&dead))
    })
    .unwrap();
    let newcomer = sim.add_node();
    sim.join(newcomer, &[1]);
    sim.run_for(Duration::from_secs(30));
    let joining = sim.core(newcomer).self_node().clone();
    assert_eq!(
        state_of(&sim, 0, &joining),
        Some(MemberState::Joining),
        "the leader may not let it up"
    );
    assert!(!sim.core(0).converged());
    sim.input(2, Input::Down { node: dead.clone() });
    sim.run_until_converged(LIMIT).expect("goes on without the dead node");
    assert_eq!(state_of(&sim, 0, &dead), Some(MemberState::Removed));
    fine(&sim);
}

#[test]
fn a_crashed_leader_is_replaced_by_the_next_reachable_member() {
    let mut sim = cluster(4, 5);
    sim.crash(0);
    let next = Some(sim.core(1).self_node().clone());
    let replaced = |sim: &Sim| sim.running().all(|node| sim.core(node).view().leader == next);
    sim.run_until_true(LIMIT, replaced)
        .expect("the next one leads although the first was not removed");
}

#[test]
fn one_observer_alone_does_not_make_a_node_unreachable() {
    let node = |port| NodeId::new(Address::new("n", port).unwrap(), Incarnation(1));
    let mut state = GossipState::new(ClusterId(1));
    (0..10).for_each(|port| assert!(state.advance(&node(port), MemberState::Up)));
    let verdict = |state: &GossipState| {
        let mut core = Core::new(node(0), Config::default(), 1);
        core.handle(
            Input::Join {
                contacts: vec![node(1).address],
                persist: false,
            },
            Duration::ZERO,
        );
        let welcome = Message::Welcome {
            snapshot: coord_cluster::Snapshot::new(state.clone()),
        };
        let envelope = Envelope {
            from: node(1),
            to: node(0).address,
            cluster: ClusterId(1),
            message: welcome,
        };
        core.handle(Input::Receive(envelope), Duration::ZERO);
        assert_eq!(core.phase(), Phase::Member);
        core.is_unreachable(&node(9))
    };
    state.set_suspects(&node(3), BTreeSet::from([node(9)]));
    assert!(!verdict(&state), "one");
    state.set_suspects(&node(4), BTreeSet::from([node(9)]));
    assert!(verdict(&state), "two");
    state.advance(&node(4), MemberState::Down);
    assert!(!verdict(&state), "a downed observer has no vote");
}

#[test]
fn a_graceful_exit_goes_through_leaving_and_exiting_to_removed() {
    let mut sim = cluster(5, 5);
    sim.take_events();
    // The leader itself leaves.
    let leaver = sim.core(0).self_node().clone();
    sim.input(
        0,
        Input::Leave {
            node: None,
            within: Duration::from_secs(30),
        },
    );
    sim.run_until_converged(LIMIT).expect("the others go on");
    assert_eq!(sim.core(0).phase(), Phase::Stopped);
    let events = sim.take_events();
    assert!(
        events
            .iter()
            .any(|(_, node, event)| *node == 0 && matches!(event, Event::Left { graceful: true, .. }))
    );
    let seen: Vec<MemberState> = events
        .iter()
        .filter_map(|(_, node, event)| match event {
            Event::Member { node: member, to, .. } if *node == 3 && *member == leaver => Some(*to),
            _ => None,
        })
        .collect();
    assert_eq!(seen, [MemberState::Leaving, MemberState::Exiting, MemberState::Removed]);
    fine(&sim);
}

#[test]
fn a_node_can_be_told_to_leave_by_another() {
    let mut sim = cluster(6, 4);
    let node = sim.core(2).self_node().clone();
    sim.input(
        3,
        Input::Leave {
            node: Some(node),
            within: LIMIT,
        },
    );
    sim.run_until_converged(LIMIT).unwrap();
    assert_eq!(sim.core(2).phase(), Phase::Stopped);
}

#[test]
fn a_leave_that_cannot_be_agreed_on_ends_at_its_deadline_and_the_others_are_told() {
    let mut sim = cluster(7, 5);
    sim.crash(4);
    sim.run_for(Duration::from_secs(15));
    let leaver = sim.core(1).self_node().clone();
    sim.input(
        1,
        Input::Leave {
            node: None,
            within: Duration::from_secs(5),
        },
    );
    sim.run_for(Duration::from_secs(8));
    assert_eq!(sim.core(1).phase(), Phase::Stopped);
    assert!(
        sim.take_events()
            .iter()
            .any(|(_, _, event)| matches!(event, Event::Left { graceful: false, .. }))
    );
    assert_eq!(
        state_of(&sim, 0, &leaver),
        Some(MemberState::Down),
        "no need to find out by silence"
    );
}

#[test]
fn leaving_waits_for_the_handoff_hook() {
    struct Gate(Arc<AtomicBool>);
    impl ExitGate for Gate {
        fn may_exit(&mut self, _node: &NodeId, _state: &GossipState) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }
    let open = Arc::new(AtomicBool::new(false));
    let me = NodeId::new(Address::new("n", 1).unwrap(), Incarnation(1));
    let mut core = Core::new(me, Config::default(), 1).with_exit_gate(Gate(open.clone()));
    core.handle(Input::Form { cluster: None }, Duration::ZERO);
    core.handle(
        Input::Leave {
            node: None,
            within: LIMIT,
        },
        Duration::ZERO,
    );
    assert_eq!(core.view().self_member().unwrap().state, MemberState::Leaving);
    core.handle(Input::Tick, Duration::from_secs(1));
    assert_eq!(core.view().self_member().unwrap().state, MemberState::Leaving);
    open.store(true, Ordering::Relaxed);
    core.handle(Input::Tick, Duration::from_secs(2));
    assert_eq!(core.phase(), Phase::Stopped);
}

#[test]
fn a_restarted_node_replaces_its_old_incarnation() {
    let mut sim = cluster(8, 5);
    let old = sim.core(3).self_node().clone();
    sim.restart(3);
    sim.join(3, &[1]);
    sim.run_until_converged(LIMIT)
        .expect("without anybody being put down by hand");
    assert_eq!(state_of(&sim, 0, &old), Some(MemberState::Removed));
    assert!(sim.core(3).self_node().incarnation > old.incarnation);
    fine(&sim);
}

#[test]
fn a_node_whose_clock_went_back_takes_a_higher_incarnation() {
    let mut sim = cluster(9, 3);
    sim.restart(2);
    sim.join(2, &[0]);
    sim.run_until_converged(LIMIT).unwrap();
    (0..2).for_each(|_| sim.restart(2));
    assert_eq!(
        sim.core(2).self_node().incarnation,
        Incarnation(1),
        "the restart does not know of its second life"
    );
    sim.join(2, &[0]);
    sim.run_until_converged(LIMIT).unwrap();
    assert!(sim.core(2).self_node().incarnation > Incarnation(2));
}

#[test]
fn a_downed_node_that_is_alive_comes_back_by_itself() {
    let mut sim = cluster(10, 5);
    let old = sim.core(2).self_node().clone();
    sim.input(4, Input::Down { node: old.clone() });
    sim.run_for(Duration::from_secs(1));
    sim.run_until_converged(LIMIT).expect("all five are up again");
    assert_ne!(*sim.core(2).self_node(), old);
    fine(&sim);
}

#[test]
fn two_sides_that_put_each_other_down_become_one_when_the_partition_heals() {
    let mut sim = Sim::new(11, Network::default());
    sim.check_invariants();
    sim.down_after(Duration::from_secs(5));
    sim.add_node();
    sim.form(0);
    for node in 1..9 {
        sim.add_node();
        sim.join(node, &[0]);
    }
    sim.run_until_converged(LIMIT).unwrap();
    (0..4).for_each(|node| sim.set_group(node, 1));
    sim.run_for(Duration::from_secs(60));
    assert_eq!(sim.core(0).view().members.len(), 4);
    assert_eq!(sim.core(8).view().members.len(), 5);
    sim.heal();
    sim.run_until_converged(LIMIT).expect("one cluster of nine");
    assert_eq!(
        sim.core(8).self_node().incarnation,
        Incarnation(1),
        "the larger side stays"
    );
    fine(&sim);
}

#[test]
fn two_clusters_never_merge_by_accident() {
    let mut sim = cluster(12, 3);
    let other = sim.add_node();
    sim.form(other);
    let (ours, theirs) = (sim.core(0).cluster(), sim.core(other).cluster());
    assert_ne!(ours, theirs);
    let snapshot = sim.core(other).snapshot().unwrap().clone();
    for cluster in [theirs, ours] {
        // Even a state under the right id in the envelope is refused when it belongs to another cluster.
        let message = Message::State {
            snapshot: snapshot.clone(),
            seen: coord_cluster::SeenSet::new(),
            answer: true,
        };
        let from = sim.core(other).self_node().clone();
        let envelope = Envelope {
            from,
            to: sim.address(0),
            cluster,
            message,
        };
        sim.input(0, Input::Receive(envelope));
    }
    sim.run_for(Duration::from_secs(20));
    assert_eq!(sim.traffic().dropped, 2);
    assert_eq!(sim.core(0).view().members.len(), 3);
    assert_eq!(sim.core(other).view().members.len(), 1);
}

#[test]
fn a_whole_cluster_told_to_join_another_adopts_its_id_and_a_straggler_follows() {
    let mut sim = cluster(13, 4);
    let first = sim.len();
    for _ in 0..5 {
        sim.add_node();
    }
    sim.form(first);
    (first + 1..first + 5).for_each(|node| sim.join(node, &[first]));
    sim.run_for(Duration::from_secs(15));
    let (target, old) = (sim.core(0).cluster(), sim.core(first).cluster());
    assert_ne!(target, old);
    // One of them sleeps through the decision.
    sim.pause(first + 4, Duration::from_secs(60));
    sim.join(first + 2, &[3]);
    sim.run_for(Duration::from_secs(50));
    assert_eq!(sim.core(first).cluster(), target);
    sim.run_until_converged(LIMIT)
        .expect("nine in one cluster, the straggler included");
    assert_eq!(sim.core(first + 4).cluster(), target);
}

#[test]
fn a_converged_cluster_says_so_in_few_bytes() {
    let sim = cluster(14, 200);
    let mut core = Core::new(
        NodeId::new(Address::new("x", 1).unwrap(), Incarnation(1)),
        Config::default(),
        1,
    );
    core.handle(Input::Form { cluster: None }, Duration::ZERO);
    let mut sim = sim;
    sim.run_for(Duration::from_secs(10));
    sim.measure_traffic();
    sim.run_for(Duration::from_secs(10));
    let per_message = sim.traffic().bytes / sim.traffic().sent;
    assert!(per_message < 60, "{per_message} bytes");
    assert!(wire_size(&Message::Pong) < 35);
}

#[test]
fn heartbeats_per_node_do_not_grow_with_the_cluster() {
    let sent_per_node = |nodes: usize| {
        let mut sim = cluster(15, nodes);
        sim.run_for(Duration::from_secs(10));
        sim.measure_traffic();
        sim.run_for(Duration::from_secs(20));
        sim.traffic().sent / nodes as u64
    };
    assert!(sent_per_node(100).abs_diff(sent_per_node(20)) < 10);
}

#[test]
fn meta_spreads_and_the_last_write_wins() {
    let mut sim = cluster(16, 5);
    sim.input(
        1,
        Input::SetMeta {
            key: "k".into(),
            value: Some(b"1".to_vec()),
        },
    );
    sim.run_until_converged(LIMIT).unwrap();
    sim.input(
        3,
        Input::SetMeta {
            key: "k".into(),
            value: Some(b"2".to_vec()),
        },
    );
    sim.run_until_converged(LIMIT).unwrap();
    let value = sim.core(0).snapshot().unwrap().state().meta().get(&"k".into()).cloned();
    assert_eq!(value.as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_late_welcome_of_an_abandoned_join_is_ignored() {
    let me = NodeId::new(Address::new("n", 1).unwrap(), Incarnation(1));
    let contact = NodeId::new(Address::new("n", 2).unwrap(), Incarnation(1));
    let mut core = Core::new(me.clone(), Config::default(), 1);
    core.handle(
        Input::Join {
            contacts: vec![contact.address.clone()],
            persist: true,
        },
        Duration::ZERO,
    );
    core.handle(Input::AbandonJoin, Duration::ZERO);
    let mut state = GossipState::new(ClusterId(5));
    state.advance(&contact, MemberState::Up);
    state.advance(&me, MemberState::Joining);
    let message = Message::Welcome {
        snapshot: coord_cluster::Snapshot::new(state),
    };
    let envelope = Envelope {
        from: contact,
        to: me.address,
        cluster: ClusterId(5),
        message,
    };
    let outputs = core.handle(Input::Receive(envelope), Duration::from_secs(1));
    assert!(matches!(outputs[..], [Output::Dropped(_)]));
    assert_eq!(core.phase(), Phase::Idle);
}
