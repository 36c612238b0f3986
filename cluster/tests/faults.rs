//! What must hold in bad company: contradicting verdicts, quick restarts, deaf nodes, departures in the middle of
//! trouble. One named test for each, in simulation.

use std::time::Duration;

use coord_cluster::sim::{Network, Sim};
use coord_cluster::{
    Address, ClusterId, Config, Core, Envelope, Event, GossipState, Incarnation, Input, MemberState, Message, NodeId,
    Output, Phase, Refusal, Snapshot,
};

const LIMIT: Duration = Duration::from_secs(120);

fn cluster(seed: u64, nodes: usize) -> Sim {
    cluster_with(Sim::new(seed, Network::default()), nodes)
}

fn cluster_with(mut sim: Sim, nodes: usize) -> Sim {
    sim.check_invariants();
    sim.record_events();
    let first = sim.add_node();
    sim.form(first);
    for _ in 1..nodes {
        let node = sim.add_node();
        sim.join(node, &[first]);
    }
    sim.run_until_converged(LIMIT).expect("the cluster forms");
    sim.take_events();
    sim
}

fn id(port: u16, life: u64) -> NodeId {
    NodeId::new(Address::new("n", port).unwrap(), Incarnation(life))
}

fn fine(sim: &Sim) {
    assert_eq!(sim.violation(), None);
}

fn leave(within: Duration) -> Input {
    Input::Leave { node: None, within }
}

#[test]
fn a_node_that_says_farewell_amid_news_stays_gone() {
    for seed in 0..20 {
        let mut sim = cluster(seed, 5);
        // Nobody can agree on an exit while a member is unreachable.
        sim.crash(4);
        sim.run_for(Duration::from_secs(10));
        sim.input(1, leave(Duration::from_secs(3)));
        for round in 0..50 {
            for node in [0, 2, 3] {
                let (key, value) = (format!("k{node}"), Some(vec![round]));
                sim.input(node, Input::SetMeta { key, value });
            }
            sim.run_for(Duration::from_millis(100));
        }
        assert_eq!(sim.core(1).phase(), Phase::Stopped, "seed {seed}");
        let events = sim.take_events();
        let reborn = events
            .iter()
            .any(|(_, node, event)| *node == 1 && matches!(event, Event::Reborn { .. }));
        assert!(!reborn, "seed {seed}: it was told to leave");
        fine(&sim);
    }
}

#[test]
fn a_departing_node_takes_no_orders_and_comes_to_an_end() {
    let mut sim = cluster(1, 3);
    sim.set_group(1, 1);
    sim.input(1, leave(Duration::ZERO));
    sim.run_for(Duration::from_millis(1));
    assert_eq!(sim.core(1).phase(), Phase::Departing);
    let (key, value) = ("k".into(), Some(vec![1]));
    sim.input(1, Input::SetMeta { key, value });
    let node = sim.core(0).self_node().clone();
    sim.input(1, Input::Down { node });
    sim.run_for(Duration::from_secs(5));
    assert_eq!(sim.core(1).phase(), Phase::Stopped);
    assert_eq!(sim.core(1).self_node().incarnation, Incarnation(1));
}

#[test]
fn leaving_without_a_deadline_is_no_overflow() {
    let mut sim = cluster(1, 3);
    sim.input(2, leave(Duration::MAX));
    sim.run_until_converged(LIMIT).expect("two are left");
    assert_eq!(sim.core(2).phase(), Phase::Stopped);
}

#[test]
fn a_partitioned_node_that_leaves_stops_at_its_deadline() {
    let mut sim = cluster(2, 5);
    sim.set_group(3, 1);
    sim.run_for(Duration::from_secs(1));
    sim.input(3, leave(Duration::from_secs(5)));
    sim.run_for(Duration::from_secs(8));
    assert_eq!(sim.core(3).phase(), Phase::Stopped);
    let ungraceful = Event::Left {
        graceful: false,
        last: false,
    };
    assert!(
        sim.take_events()
            .iter()
            .any(|(_, node, event)| *node == 3 && *event == ungraceful)
    );
    fine(&sim);
}

#[test]
fn two_equal_sides_that_put_each_other_down_do_not_argue_for_ever() {
    let mut sim = cluster(3, 3);
    let (one, two) = (sim.core(1).self_node().clone(), sim.core(2).self_node().clone());
    // The third, which both count as theirs, cannot tell them.
    sim.set_group(0, 1);
    sim.input(1, Input::Down { node: two.clone() });
    sim.input(2, Input::Down { node: one.clone() });
    let before = sim.traffic().sent;
    sim.run_for(Duration::from_secs(2));
    assert!(
        sim.traffic().sent - before < 200,
        "{} messages",
        sim.traffic().sent - before
    );
    sim.heal();
    sim.run_until_converged(LIMIT).expect("one cluster of three");
    fine(&sim);
}

#[test]
fn a_contact_that_calls_every_incarnation_stale_is_not_asked_without_end() {
    let mut core = Core::new(id(1, 1), Config::default(), 1);
    let contacts = vec![id(2, 1).address];
    let mut asked = 0;
    let mut outputs = core.handle(
        Input::Join {
            contacts,
            persist: true,
        },
        Duration::ZERO,
    );
    while outputs.iter().any(|output| matches!(output, Output::Send(_))) && asked < 100 {
        asked += 1;
        let message = Message::Refused(Refusal::Stale(Incarnation(u64::MAX)));
        let envelope = Envelope {
            from: id(2, 1),
            to: id(1, 1).address,
            cluster: ClusterId(1),
            message,
        };
        outputs = core.handle(Input::Receive(envelope), Duration::from_millis(asked));
    }
    assert!(asked < 5, "asked {asked} times at once");
}

#[test]
fn two_lives_that_joined_at_different_contacts_leave_only_the_later_one() {
    let mut sim = cluster(4, 4);
    let node = sim.add_node();
    // The first life is known to nodes 0 and 1 alone, the second to 2 and 3 alone.
    for other in [2, 3] {
        sim.set_group(other, 1);
    }
    sim.join(node, &[0]);
    sim.run_for(Duration::from_millis(500));
    sim.restart(node);
    sim.set_group(node, 1);
    sim.join(node, &[2]);
    sim.run_for(Duration::from_millis(500));
    sim.heal();
    sim.run_until_converged(LIMIT)
        .expect("nobody has to put the first life down");
    assert_eq!(sim.core(node).self_node().incarnation, Incarnation(2));
    fine(&sim);
}

#[test]
fn an_address_that_restarts_ten_times_in_a_row_is_one_member_in_the_end() {
    for seed in 0..10 {
        let mut sim = cluster(seed, 6);
        for life in 0..10u64 {
            sim.restart(5);
            sim.join(5, &[(life % 5) as usize, ((life + 1) % 5) as usize]);
            sim.run_for(Duration::from_millis(1 + 37 * (life + seed) % 400));
        }
        sim.run_until_converged(LIMIT)
            .expect("without anybody being put down by hand");
        assert_eq!(sim.core(0).view().members.len(), 6, "seed {seed}");
        fine(&sim);
    }
}

#[test]
fn a_partition_that_lasted_for_hours_still_heals() {
    let mut sim = Sim::new(11, Network::default());
    sim.down_after(Duration::from_secs(5));
    let mut sim = cluster_with(sim, 6);
    (0..2).for_each(|node| sim.set_group(node, 1));
    sim.run_for(Duration::from_secs(3 * 3600));
    assert_eq!(
        (sim.core(0).view().members.len(), sim.core(5).view().members.len()),
        (2, 4)
    );
    sim.heal();
    sim.run_until_converged(Duration::from_secs(600))
        .expect("one cluster of six");
    fine(&sim);
}

#[test]
fn a_cluster_told_to_join_one_that_then_dies_goes_on() {
    let mut sim = cluster(5, 4);
    let old = sim.core(0).cluster();
    let target = sim.add_node();
    sim.form(target);
    sim.join(2, &[target]);
    sim.run_for(Duration::from_millis(100));
    sim.crash(target);
    sim.run_for(LIMIT);
    for node in 0..4 {
        assert_eq!((sim.core(node).phase(), sim.core(node).cluster()), (Phase::Member, old));
    }
    assert!(sim.converged());
}

#[test]
fn two_clusters_told_to_join_each_other_become_one() {
    for seed in 0..5 {
        let mut sim = cluster(seed, 3);
        for _ in 3..7 {
            sim.add_node();
        }
        sim.form(3);
        (4..7).for_each(|node| sim.join(node, &[3]));
        sim.run_for(Duration::from_secs(15));
        sim.join(1, &[4]);
        sim.join(5, &[2]);
        sim.run_until_converged(LIMIT).expect("one cluster of seven");
    }
}

/// What `viewer` makes of a state that a member at `from` hands it.
fn view_of(state: &GossipState, viewer: &NodeId, from: &NodeId) -> Core {
    let mut core = Core::new(viewer.clone(), Config::default(), 1);
    let contacts = vec![from.address.clone()];
    core.handle(
        Input::Join {
            contacts,
            persist: false,
        },
        Duration::ZERO,
    );
    let envelope = Envelope {
        from: from.clone(),
        to: viewer.address.clone(),
        cluster: state.cluster(),
        message: Message::Welcome {
            snapshot: Snapshot::new(state.clone()),
        },
    };
    core.handle(Input::Receive(envelope), Duration::ZERO);
    core
}

#[test]
fn a_deaf_node_does_not_make_those_unreachable_who_hear_of_it() {
    for nodes in [2, 3, 5] {
        let mut state = GossipState::new(ClusterId(1));
        (0..nodes).for_each(|port| assert!(state.advance(&id(port, 1), MemberState::Up)));
        let deaf = id(1, 1);
        let others: Vec<NodeId> = (0..nodes).filter(|port| *port != 1).map(|port| id(port, 1)).collect();
        state.set_suspects(&deaf, others.iter().cloned().collect());
        for viewer in &others {
            let view = view_of(&state, viewer, &deaf).view();
            assert!(
                view.members.iter().all(|member| member.reachable),
                "{nodes} nodes, as seen by {viewer}"
            );
        }
    }
}

#[test]
fn a_node_that_hears_little_does_not_make_others_unreachable() {
    for (seed, nodes) in [(1, 3), (2, 5), (3, 10), (4, 25)] {
        let mut sim = cluster(seed, nodes);
        sim.set_deaf(1, 0.8);
        let unreachable = |sim: &Sim, viewer: usize| {
            let members = sim.core(viewer).view().members;
            members
                .iter()
                .filter(|member| !member.reachable)
                .any(|member| member.node != *sim.core(1).self_node())
        };
        let mut wrong = 0;
        for _ in 0..600 {
            sim.run_for(Duration::from_millis(100));
            wrong += (0..nodes)
                .filter(|viewer| *viewer != 1 && unreachable(&sim, *viewer))
                .count();
        }
        // For as long as its word has spread and the answer has not.
        assert!(
            wrong < 30 * nodes,
            "{nodes} nodes: wrong in {wrong} of {} looks",
            600 * nodes
        );
        sim.heal();
        sim.run_until_converged(LIMIT).expect("all is well again");
        fine(&sim);
    }
}

#[test]
fn the_last_ones_left_find_all_others_unreachable_however_many_crash_at_once() {
    for (nodes, dead) in [(2, 1), (3, 2), (6, 5), (10, 9), (30, 20), (100, 50)] {
        let mut sim = cluster(7, nodes);
        (0..dead).for_each(|node| sim.crash(node));
        let lost = |sim: &Sim| {
            sim.core(nodes - 1)
                .view()
                .members
                .iter()
                .filter(|m| !m.reachable)
                .count()
        };
        let took = sim.run_until_true(LIMIT, |sim| lost(sim) == dead);
        assert!(took.is_some(), "{} of {dead} in {nodes}", lost(&sim));

        let mut sim = Sim::new(7, Network::default());
        sim.down_after(Duration::from_secs(5));
        let mut sim = cluster_with(sim, nodes);
        (0..dead).for_each(|node| sim.crash(node));
        assert!(sim.run_until_converged(LIMIT).is_some(), "{dead} of {nodes} put down");
        fine(&sim);
    }
}

#[test]
fn a_node_cut_off_from_a_large_cluster_does_not_ask_more_and_more() {
    let mut sim = cluster(8, 60);
    sim.set_group(7, 1);
    sim.run_for(Duration::from_secs(300));
    for other in (0..60).filter(|node| *node != 7) {
        sim.crash(other);
    }
    let before = sim.traffic().sent;
    sim.run_for(Duration::from_secs(20));
    let per_second = (sim.traffic().sent - before) / 20;
    assert!(per_second < 20, "{per_second} messages a second");
}
