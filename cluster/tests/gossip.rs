//! The section *Gossip Protocol*: who gossips with whom, how often, and what travels.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coord_cluster::{
    Address, CLOCK_ENTRIES, ClusterId, Config, Core, Envelope, GossipState, Incarnation, Input, LwwMap, MAX_META_BYTES,
    MAX_META_ENTRIES, MAX_META_TOTAL, MemberState, Message, MetaError, NodeId, Output, PartitionChange,
    PartitionChangeStatus, Refusal, SeenBy, Snapshot,
};

const SECOND: Duration = Duration::from_secs(1);

fn id(port: u16) -> NodeId {
    NodeId::new(Address::new("n", port).unwrap(), Incarnation(1))
}

fn state_of(nodes: u16) -> GossipState {
    let mut state = GossipState::new(ClusterId(1));
    for port in 0..nodes {
        state.advance(&id(port), MemberState::Up);
        state.bump(id(port).key());
    }
    state
}

fn from(sender: u16, to: u16, message: Message) -> Input {
    Input::Receive(Envelope {
        from: id(sender),
        to: id(to).address,
        cluster: ClusterId(1),
        message,
    })
}

/// Node `port` with this state, let in by node 1 (or 0).
fn member(port: u16, state: &GossipState, config: Config) -> Core {
    let contact = u16::from(port != 1);
    let mut core = Core::new(id(port), config, 5);
    let contacts = vec![id(contact).address];
    let persist = false;
    core.handle(Input::Join { contacts, persist }, Duration::ZERO);
    let snapshot = Snapshot::new(state.clone());
    core.handle(from(contact, port, Message::Welcome { snapshot }), Duration::ZERO);
    assert!(core.snapshot().is_some());
    core
}

/// Runs a node alone for a while and counts its overviews by receiver. Nobody answers, so suspicions are switched off.
fn overviews(nodes: u16, prepare: impl Fn(&mut GossipState), rounds: u32) -> BTreeMap<u16, u32> {
    let mut state = state_of(nodes);
    prepare(&mut state);
    let mut config = Config::default();
    config.detector.acceptable_pause = SECOND * 1_000_000;
    let mut core = member(nodes - 1, &state, config);
    let mut counts = BTreeMap::new();
    let mut overviews = 0;
    while overviews < rounds {
        let now = core.next_wake();
        for output in core.handle(Input::Tick, now) {
            if let Output::Send(envelope) = output
                && matches!(envelope.message, Message::Overview(_))
            {
                *counts.entry(envelope.to.port()).or_default() += 1;
                overviews += 1;
            }
        }
    }
    counts
}

fn see_all(core: &mut Core, me: u16, nodes: u16, now: Duration) {
    let digest = core.snapshot().unwrap().state().digest();
    let overview = coord_cluster::Overview {
        digest,
        seen: SeenBy::All,
        clock: None,
    };
    core.handle(from((me + 1) % nodes, me, Message::Overview(overview)), now);
}

#[test]
fn each_round_goes_to_random_live_nodes() {
    let counts = overviews(11, |_| (), 2000);
    assert_eq!(counts.len(), 10, "everybody gets some, oneself none: {counts:?}");
    assert!(counts.values().all(|count| (100..300).contains(count)), "{counts:?}");
}

#[test]
fn an_unreachable_node_gets_some_gossip_and_deputies_get_more_while_there_is_one() {
    let accuse = |state: &mut GossipState| {
        state.set_suspects(&id(5), BTreeSet::from([id(7)]));
        state.set_suspects(&id(6), BTreeSet::from([id(7)]));
    };
    let counts = overviews(21, accuse, 4000);
    let of = |port: u16| counts.get(&port).copied().unwrap_or(0);
    assert!(of(7) > 20, "it may have come back: {counts:?}");
    let contacts = (0..4).map(of).sum::<u32>() / 4;
    let others = (8..18).map(of).sum::<u32>() / 10;
    assert!(
        contacts * 10 > others * 12,
        "leader and deputies {contacts}, others {others}"
    );
    let calm = overviews(21, |_| (), 4000);
    let contacts = (0..4).map(|port| calm[&port]).sum::<u32>() / 4;
    let others = (8..18).map(|port| calm[&port]).sum::<u32>() / 10;
    assert!(contacts * 10 < others * 12, "without one: {contacts} and {others}");
}

#[test]
fn nodes_known_to_have_an_older_version_are_preferred() {
    // Six of twelve have seen the state.
    let mut core = member(11, &state_of(12), Config::default());
    let snapshot = core.snapshot().unwrap().clone();
    let mut seen = coord_cluster::SeenSet::new();
    (0..6).for_each(|index| seen.insert(index));
    let answer = false;
    core.handle(from(3, 11, Message::State { snapshot, seen, answer }), Duration::ZERO);
    let (mut old, mut new) = (0, 0);
    for _ in 0..8 {
        let now = core.next_wake();
        for output in core.handle(Input::Tick, now) {
            if let Output::Send(envelope) = output
                && matches!(envelope.message, Message::Overview(_))
            {
                if envelope.to.port() < 6 { new += 1 } else { old += 1 }
            }
        }
    }
    assert!(old > new, "{old} to those who lack it, {new} to those who do not");
}

#[test]
fn gossip_is_every_second_when_all_have_seen_the_state_and_faster_until_then() {
    let rounds = |calm: bool| {
        let mut core = member(4, &state_of(5), Config::default());
        let mut rounds = 0;
        let end = SECOND * 3;
        while core.next_wake() < end {
            let now = core.next_wake();
            if calm {
                see_all(&mut core, 4, 5, now);
            }
            let outputs = core.handle(Input::Tick, now);
            let gossip =
                |output: &Output| matches!(output, Output::Send(e) if matches!(e.message, Message::Overview(_)));
            rounds += usize::from(outputs.iter().any(gossip));
        }
        rounds
    };
    let (calm, busy) = (rounds(true), rounds(false));
    assert!((2..=4).contains(&calm), "{calm} rounds in three seconds");
    assert!((9..=16).contains(&busy), "{busy} rounds in three seconds");
}

#[test]
fn only_the_side_that_lacks_a_state_is_sent_one() {
    let old = state_of(5);
    let mut new = old.clone();
    new.set_meta("k".into(), Some(vec![1]), id(2).key());
    new.bump(id(2).key());
    let overview = |state: &GossipState| {
        Message::Overview(coord_cluster::Overview {
            digest: state.digest(),
            seen: SeenBy::Some(coord_cluster::SeenSet::new()),
            clock: Some(state.version().clone()),
        })
    };
    let answer = |have: &GossipState, hears: &GossipState| {
        let mut core = member(4, have, Config::default());
        let mut names = Vec::new();
        for output in core.handle(from(2, 4, overview(hears)), Duration::ZERO) {
            if let Output::Send(envelope) = output {
                names.push(envelope.message.name());
            }
        }
        names
    };
    assert_eq!(answer(&new, &old), ["state"], "the newer one sends it");
    assert_eq!(answer(&old, &new), ["request"], "the older one asks for it");
    assert_eq!(
        answer(&old, &old),
        ["overview"],
        "equal ones say who has seen it, and no more"
    );
}

#[test]
fn an_overview_is_a_sign_of_life_for_the_failure_detector() {
    let suspected = |gossips: bool| {
        let mut core = member(2, &state_of(3), Config::default());
        let mut now = Duration::ZERO;
        let digest = core.snapshot().unwrap().state().digest();
        while now < SECOND * 20 {
            now = core.next_wake();
            core.handle(Input::Tick, now);
            let overview = coord_cluster::Overview {
                digest,
                seen: SeenBy::All,
                clock: None,
            };
            if gossips {
                core.handle(from(0, 2, Message::Overview(overview.clone())), now);
                core.handle(from(1, 2, Message::Overview(overview)), now);
            }
        }
        let rows = core.snapshot().unwrap().state().reachability();
        rows.values().any(|row| !row.suspects.is_empty())
    };
    assert!(suspected(false));
    assert!(!suspected(true));
}

#[test]
fn a_pause_of_the_observer_is_not_blamed_on_the_others() {
    let mut core = member(2, &state_of(3), Config::default());
    let mut now = Duration::ZERO;
    while now < SECOND * 10 {
        now = core.next_wake();
        for output in core.handle(Input::Tick, now) {
            if let Output::Send(envelope) = output
                && matches!(envelope.message, Message::Ping { .. })
            {
                core.handle(from(envelope.to.port(), 2, Message::Pong), now);
            }
        }
    }
    let suspects = |core: &Core| {
        let rows = core.snapshot().unwrap().state().reachability();
        rows.values().map(|row| row.suspects.len()).sum::<usize>()
    };
    now += SECOND * 30;
    core.handle(Input::Tick, now);
    assert_eq!(suspects(&core), 0, "nobody was asked, so nobody could answer");
    while now < SECOND * 60 {
        now = core.next_wake();
        core.handle(Input::Tick, now);
    }
    assert_eq!(suspects(&core), 2, "a silence that it was awake for");
}

#[test]
fn pruned_states_lose_no_update_and_merge_alike_in_any_order() {
    // Three replicas, each written to by more nodes than the clock has room for.
    let writers = CLOCK_ENTRIES as u16 * 2;
    let mut replicas = vec![state_of(3); 3];
    for turn in 0..writers {
        for (index, replica) in replicas.iter_mut().enumerate() {
            let writer = id(1000 * (index as u16 + 1) + turn).key();
            replica.set_meta(format!("{index}-{}", turn % 100), Some(vec![turn as u8]), writer);
            replica.bump(writer);
        }
    }
    assert!(replicas.iter().all(|replica| replica.version().len() == CLOCK_ENTRIES));
    let merged = |order: [usize; 3]| {
        let mut all = replicas[order[0]].clone();
        all.merge(&replicas[order[1]]);
        all.merge(&replicas[order[2]]);
        all
    };
    let all = merged([0, 1, 2]);
    assert_eq!(all.meta().entries(), 300, "no update is lost");
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(merged(order), all);
    }
    // Whatever the pruned clocks say about the order of two states, each takes the news of the other.
    for (a, b) in [(0, 1), (1, 2), (2, 0)] {
        let (a, b) = (Snapshot::new(replicas[a].clone()), Snapshot::new(replicas[b].clone()));
        assert_eq!(a.merged(&b).state().digest(), b.merged(&a).state().digest());
        assert_eq!(a.merged(&b).state().meta().entries(), 200);
    }
}

#[test]
fn partition_changes_hold_a_leaving_node_until_they_are_complete() {
    use coord_cluster::{ExitGate, NothingPending};
    let mut state = state_of(3);
    let (from, to, path) = (id(1), id(2), "a/b".to_owned());
    let change = PartitionChange { from, to, path };
    state.set_pending(change.clone(), Some(PartitionChangeStatus::Awaiting), id(0).key());
    assert!(!NothingPending.may_exit(&id(1), &state));
    assert!(
        NothingPending.may_exit(&id(2), &state),
        "it receives, and hands nothing off"
    );
    state.set_pending(change, Some(PartitionChangeStatus::Complete), id(0).key());
    assert!(NothingPending.may_exit(&id(1), &state));
}

#[test]
fn a_full_cluster_a_wrong_cluster_and_a_stale_incarnation_are_refused() {
    let config = Config {
        max_members: 5,
        ..Config::default()
    };
    let mut state = state_of(5);
    state.advance(&NodeId::new(id(9).address, Incarnation(4)), MemberState::Removed);
    let mut core = member(4, &state, config);
    let mut answer = |newcomer: u16, expected: ClusterId| {
        let outputs = core.handle(from(newcomer, 4, Message::Join { expected }), SECOND);
        outputs.into_iter().find_map(|output| match output {
            Output::Send(Envelope {
                message: Message::Refused(refusal),
                ..
            }) => Some(refusal),
            _ => None,
        })
    };
    assert_eq!(answer(8, ClusterId::NONE), Some(Refusal::Full));
    assert_eq!(answer(8, ClusterId(77)), Some(Refusal::OtherCluster(ClusterId(1))));
    assert_eq!(answer(9, ClusterId::NONE), Some(Refusal::Stale(Incarnation(4))));
    assert_eq!(answer(3, ClusterId::NONE), None, "a member that asks again is welcome");
}

#[test]
fn a_welcome_to_another_cluster_than_the_one_asked_for_is_ignored() {
    let mut core = member(2, &state_of(3), Config::default());
    let mut down = state_of(3);
    down.advance(&id(2), MemberState::Down);
    down.bump(id(0).key());
    let message = Message::State {
        snapshot: Snapshot::new(down),
        seen: coord_cluster::SeenSet::new(),
        answer: false,
    };
    // It wants back into its own cluster now, and nowhere else.
    let asked = core
        .handle(from(0, 2, message), SECOND)
        .into_iter()
        .find_map(|output| match output {
            Output::Send(Envelope {
                to,
                message: Message::Join { .. },
                ..
            }) => Some(to),
            _ => None,
        });
    let contact = asked.expect("it asks to be let back in").port();
    let me = core.self_node().clone();
    let mut welcomed_to = |cluster: ClusterId| {
        let mut state = GossipState::new(cluster);
        state.advance(&id(contact), MemberState::Up);
        state.advance(&me, MemberState::Joining);
        let snapshot = Snapshot::new(state);
        core.handle(from(contact, 2, Message::Welcome { snapshot }), SECOND);
        core.cluster()
    };
    assert_eq!(welcomed_to(ClusterId(99)), ClusterId::NONE);
    assert_eq!(welcomed_to(ClusterId(1)), ClusterId(1));
}

#[test]
fn meta_is_bounded_so_that_the_state_always_fits_a_frame() {
    let mut core = Core::new(id(0), Config::default(), 1);
    let value = vec![0; MAX_META_BYTES];
    assert_eq!(core.may_set_meta("k", Some(&value)), Err(MetaError::NotAMember));
    core.handle(Input::Form { cluster: None }, Duration::ZERO);
    assert_eq!(
        core.may_set_meta("k", Some(&[0; MAX_META_BYTES + 1])),
        Err(MetaError::TooLarge)
    );
    assert_eq!(core.may_set_meta(&"k".repeat(256), None), Err(MetaError::TooLarge));
    for n in 0..MAX_META_ENTRIES {
        let (key, value) = (format!("{n}"), Some(value.clone()));
        core.handle(Input::SetMeta { key, value }, Duration::ZERO);
    }
    let meta = |core: &Core| core.snapshot().unwrap().state().meta().clone();
    let bytes = |meta: &LwwMap<String, Vec<u8>>| meta.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    assert!((MAX_META_TOTAL / 2..=MAX_META_TOTAL).contains(&bytes(&meta(&core))));
    assert_eq!(core.may_set_meta("more", Some(&value)), Err(MetaError::Full));
    let key = "0".to_owned();
    core.handle(Input::SetMeta { key, value: None }, Duration::ZERO);
    assert_eq!(core.may_set_meta("more", Some(&value)), Ok(()), "there is room again");
    let key = "never there".to_owned();
    let before = meta(&core).entries();
    core.handle(Input::SetMeta { key, value: None }, Duration::ZERO);
    assert_eq!(meta(&core).entries(), before);
}

#[test]
fn a_leader_may_be_up_leaving_or_exiting_and_nothing_else() {
    use MemberState::{Down, Exiting, Joining, Leaving, Removed, Up};
    for (state_of_first, leads) in [
        (Joining, false),
        (Up, true),
        (Leaving, true),
        (Exiting, true),
        (Down, false),
        (Removed, false),
    ] {
        let mut state = GossipState::new(ClusterId(1));
        state.advance(&id(0), state_of_first);
        (1..4).for_each(|port| assert!(state.advance(&id(port), Up)));
        let leader = member(3, &state, Config::default()).view().leader;
        assert_eq!(leader, Some(id(u16::from(!leads))), "{state_of_first}");
    }
}

#[test]
fn only_the_leader_puts_the_unreachable_down() {
    use coord_cluster::DowningAfterStable;
    let downed_by = |port: u16| {
        let mut state = state_of(6);
        (3..5).for_each(|observer| state.set_suspects(&id(observer), BTreeSet::from([id(5)])));
        let mut config = Config::default();
        config.detector.acceptable_pause = SECOND * 1_000_000;
        let mut core = member(port, &state, config).with_downing(DowningAfterStable::new(SECOND));
        let mut now = Duration::ZERO;
        while now < SECOND * 10 {
            now = core.next_wake();
            core.handle(Input::Tick, now);
        }
        core.snapshot().unwrap().state().state_of(&id(5)) == Some(MemberState::Down)
    };
    assert!(downed_by(0));
    assert!(!downed_by(2));
}

#[test]
fn a_ping_for_another_life_of_the_address_is_not_answered() {
    let mut core = member(2, &state_of(3), Config::default());
    let mut answered = |life: u64| {
        let whom = Incarnation(life);
        let outputs = core.handle(from(0, 2, Message::Ping { whom }), SECOND);
        outputs
            .iter()
            .any(|output| matches!(output, Output::Send(e) if matches!(e.message, Message::Pong)))
    };
    assert!(answered(1));
    assert!(!answered(2), "the later life is elsewhere, or nowhere");
    assert!(!answered(0));
}
