use std::pin::Pin;
use std::time::Duration;

use coord_api::{CoordinatorExt, Expect, Session, SessionConfig};
use coord_bootstrap::{Bootstrap, Config, End, Event, NotJoined, Reason, Reform, State};
use coord_harness::eventually;

use crate::stage::{LONG, Stage, TTL, names, whole};

/// One sentence.
pub(crate) struct Sentence {
    pub(crate) name: &'static str,
    pub(crate) play: fn(Stage) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

macro_rules! sentences {
    ($($name:ident),* $(,)?) => {
        pub(crate) const SENTENCES: &[Sentence] = &[
            $(Sentence { name: stringify!($name), play: |stage| Box::pin($name(stage)) }),*
        ];
    };
}

sentences![
    a_node_joins_the_running_cluster,
    with_no_cluster_running_the_elected_node_forms_one_of_itself_and_advertises_itself,
    those_that_lose_the_election_join_by_the_seeds_of_the_winner,
    the_seeds_are_asked_in_turn_until_one_answers,
    the_leaders_entry_is_made_only_if_absent_and_names_the_contending_node,
    exactly_one_node_keeps_the_seeds,
    seeds_are_added_until_the_maximum,
    a_seed_that_leaves_is_removed,
    when_the_leader_quits_the_next_writes_itself_and_the_seeds,
    with_a_leader_and_no_seeds_the_node_waits_and_tries_again,
    with_a_record_and_dead_seeds_alone_the_node_waits_and_forms_the_next_generation_in_the_end,
    a_winner_that_dies_before_forming_is_followed_after_the_ttl,
    the_leaders_entry_is_kept_from_expiring_and_made_again_when_it_is_gone,
    a_second_leader_of_another_part_is_reported,
    a_member_that_reads_a_newer_generation_joins_that_as_a_new_incarnation,
    the_last_one_to_leave_removes_the_record,
    a_node_that_only_joins_never_forms_and_gives_up_at_its_deadline,
];

async fn a_node_joins_the_running_cluster(stage: Stage) {
    let mut actors = stage.cluster(2).await;
    let mut newcomer = stage.actor().await;
    newcomer.bootstrap.joined().await.unwrap();
    assert!(!newcomer.has_formed());
    actors.push(newcomer);
    stage.whole(&actors).await;
}

async fn with_no_cluster_running_the_elected_node_forms_one_of_itself_and_advertises_itself(stage: Stage) {
    let mut only = stage.actor().await;
    let record = only.bootstrap.joined().await.unwrap();
    assert!(only.has_formed());
    assert_eq!((record.generation, record.cluster), (1, only.cluster()));
    let view = only.node.view();
    assert!(view.members.len() == 1 && view.is_leader());
    stage.advertised(&[&only]).await;
    stage.led_by(&only).await;
}

async fn those_that_lose_the_election_join_by_the_seeds_of_the_winner(stage: Stage) {
    let mut actors = vec![];
    for _ in 0..4 {
        actors.push(stage.actor().await);
    }
    stage.whole(&actors).await;
    let formed = actors
        .iter_mut()
        .filter_map(|actor| actor.has_formed().then_some(()))
        .count();
    assert_eq!(formed, 1, "one winner");
}

async fn the_seeds_are_asked_in_turn_until_one_answers(stage: Stage) {
    let first = stage.actor().await;
    let record = first.bootstrap.joined().await.unwrap();
    stage.advertised(&[&first]).await;
    // The manager stops managing; nobody corrects what is written now.
    let crate::stage::Actor { node, bootstrap, .. } = first;
    drop(bootstrap);
    for port in 1..4 {
        let key = stage.key("seeds").child(format!("127.0.0.1:{port}")).unwrap();
        let value = format!(
            r#"{{"node":"127.0.0.1:{port}","incarnation":1,"cluster":"{}"}}"#,
            record.cluster
        );
        stage.operator.create_persistent(&key, value).await.unwrap();
    }
    let newcomer = stage.actor().await;
    newcomer.bootstrap.joined().await.unwrap();
    assert_eq!(newcomer.cluster(), node.view().cluster);
}

async fn the_leaders_entry_is_made_only_if_absent_and_names_the_contending_node(stage: Stage) {
    // Somebody who knows nothing of this protocol is in the way.
    let foreign = stage
        .operator
        .create_persistent(&stage.key("leader"), "somebody")
        .await
        .unwrap();
    let node = stage.actor().await;
    let mut state = node.bootstrap.watch();
    let waits = |state: &State| {
        matches!(
            state,
            State::Waiting {
                attempt: 2..,
                reason: Reason::LeaderElsewhere,
                ..
            }
        )
    };
    state.wait_for(waits).await.unwrap();
    assert_eq!(stage.get("leader").await.as_ref(), Some(&foreign), "never overwritten");
    assert_eq!(stage.get("cluster").await, None);
    stage.operator.delete(&foreign.key, Expect::Any).await.unwrap();
    node.bootstrap.joined().await.unwrap();
    let entry = stage.led_by(&node).await;
    assert!(entry.lease.is_some(), "it has a time to live");
}

async fn exactly_one_node_keeps_the_seeds(stage: Stage) {
    let actors = stage.cluster(3).await;
    eventually(LONG, "one manager", async || {
        let managing = actors.iter().filter(|actor| actor.bootstrap.state().is_managing());
        let managing: Vec<_> = managing.map(|actor| actor.node.self_node()).collect();
        let first = actors.iter().map(|actor| actor.node.self_node()).min();
        (managing.len() == 1 && managing.first() == first.as_ref()).then_some(())
    })
    .await;
}

async fn seeds_are_added_until_the_maximum(stage: Stage) {
    let config = Config {
        max_seeds: 2,
        ..stage.config()
    };
    let mut actors = vec![];
    for size in 1..=3_usize {
        actors.push(stage.actor_with(config.clone()).await);
        stage.whole(&actors).await;
        eventually(LONG, "as many seeds as there may be", async || {
            let seeds = stage.seeds().await;
            let known = seeds.iter().all(|seed| actors.iter().any(|actor| names(seed, actor)));
            (known && seeds.len() == size.min(2))
                .then_some(())
                .ok_or(format!("{seeds:?}"))
        })
        .await;
    }
}

async fn a_seed_that_leaves_is_removed(stage: Stage) {
    let actors = stage.cluster(3).await;
    let all: Vec<_> = actors.iter().collect();
    stage.advertised(&all).await;
    let last = actors.iter().max_by_key(|actor| actor.node.self_node()).unwrap();
    assert_eq!(last.bootstrap.leave(LONG).await, End::Left { graceful: true });
    let me = last.node.self_node();
    let others: Vec<_> = actors.iter().filter(|actor| actor.node.self_node() != me).collect();
    stage.advertised(&others).await;
}

async fn when_the_leader_quits_the_next_writes_itself_and_the_seeds(stage: Stage) {
    let mut actors = stage.cluster(3).await;
    actors.sort_by_key(|actor| actor.node.self_node());
    let before = stage.led_by(&actors[0]).await;
    assert_eq!(actors[0].bootstrap.leave(LONG).await, End::Left { graceful: true });
    let after = stage.led_by(&actors[1]).await;
    assert!(after.created > before.created);
    stage.advertised(&[&actors[1], &actors[2]]).await;
    whole(&[&actors[1], &actors[2]]).await;
}

async fn with_a_leader_and_no_seeds_the_node_waits_and_tries_again(stage: Stage) {
    let first = stage.actor().await;
    first.bootstrap.joined().await.unwrap();
    stage.advertised(&[&first]).await;
    let newcomer = {
        // A manager whose writes do not arrive would leave it like this.
        let grant = stage.operator.grant(LONG).await.unwrap();
        let crate::stage::Actor { node, bootstrap, .. } = first;
        drop(bootstrap);
        eventually(LONG, "the old entry ends", async || stage.get("leader").await.is_none()).await;
        let leader = stage.key("leader");
        stage
            .operator
            .create_ephemeral(&leader, "somebody", grant.lease)
            .await
            .unwrap();
        stage.operator.delete_recursive(&stage.key("seeds")).await.unwrap();
        let newcomer = stage.actor().await;
        let mut state = newcomer.bootstrap.watch();
        let waits = |state: &State| matches!(state, State::Waiting { attempt: 3.., .. });
        state.wait_for(waits).await.unwrap();
        assert!(newcomer.bootstrap.state().record().is_none());
        stage.operator.revoke(grant.lease).await.unwrap();
        // The manager is back.
        let config = Config {
            reform: Reform::Never,
            ..stage.config()
        };
        let back = Bootstrap::start(stage.coordinator.clone(), node.clone(), config).unwrap();
        newcomer.bootstrap.joined().await.unwrap();
        assert_eq!(newcomer.cluster(), node.view().cluster);
        drop(back);
        newcomer
    };
    drop(newcomer);
}

async fn with_a_record_and_dead_seeds_alone_the_node_waits_and_forms_the_next_generation_in_the_end(stage: Stage) {
    let record = r#"{"cluster":"0000010000000001","generation":1}"#;
    stage
        .operator
        .create_persistent(&stage.key("cluster"), record)
        .await
        .unwrap();
    let dead = r#"{"node":"127.0.0.1:1","incarnation":1,"cluster":"0000010000000001"}"#;
    let key = stage.key("seeds").child("127.0.0.1:1").unwrap();
    stage.operator.create_persistent(&key, dead).await.unwrap();
    let started = std::time::Instant::now();
    let node = stage.actor().await;
    let record = node.bootstrap.joined().await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(4), "not before reform_after");
    assert_eq!(record.generation, 2);
    stage.advertised(&[&node]).await;
}

async fn a_winner_that_dies_before_forming_is_followed_after_the_ttl(stage: Stage) {
    let leader = stage.key("leader");
    // It has won, and that was all.
    let (_, entry) = stage
        .operator
        .create_with_ttl(&leader, "the winner", TTL)
        .await
        .unwrap();
    let started = std::time::Instant::now();
    let node = stage.actor().await;
    node.bootstrap.joined().await.unwrap();
    assert!(started.elapsed() > TTL / 2, "the winner's entry was respected");
    assert!(stage.led_by(&node).await.created > entry.created);
}

async fn the_leaders_entry_is_kept_from_expiring_and_made_again_when_it_is_gone(stage: Stage) {
    let node = stage.actor().await;
    node.bootstrap.joined().await.unwrap();
    let entry = stage.led_by(&node).await;
    let end = std::time::Instant::now() + TTL * 3;
    while std::time::Instant::now() < end {
        assert_eq!(stage.get("leader").await.map(|now| now.created), Some(entry.created));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stage.operator.delete(&entry.key, Expect::Any).await.unwrap();
    eventually(LONG, "another entry", async || {
        stage.get("leader").await.is_some_and(|now| now.created > entry.created)
    })
    .await;
    assert_eq!(
        node.bootstrap.state().record().map(|record| record.cluster),
        Some(node.cluster())
    );
}

async fn a_second_leader_of_another_part_is_reported(stage: Stage) {
    let mut node = stage.actor().await;
    node.bootstrap.joined().await.unwrap();
    let entry = stage.led_by(&node).await;
    // As another part of a split cluster does, or an operator who thinks he knows better.
    let config = SessionConfig {
        ttl: TTL,
        ..SessionConfig::default()
    };
    let session = Session::open(stage.operator.clone(), config).unwrap();
    let lease = session.connected().await.unwrap().lease;
    loop {
        let _ = stage.operator.delete(&entry.key, Expect::Any).await;
        match stage.operator.create_ephemeral(&entry.key, "rival#1", lease).await {
            Ok(_) => break,
            Err(error) => assert!(error.holder().is_some(), "{error}"),
        }
    }
    loop {
        if let Event::Rival { holder } = node.events.recv().await.unwrap() {
            assert_eq!(holder, "rival#1");
            break;
        }
    }
    assert!(!node.bootstrap.state().is_managing());
    assert!(
        node.bootstrap.state().record().is_some(),
        "the cluster lives all the same"
    );
}

async fn a_member_that_reads_a_newer_generation_joins_that_as_a_new_incarnation(stage: Stage) {
    let old = stage.actor().await;
    let record = old.bootstrap.joined().await.unwrap();
    stage.advertised(&[&old]).await;
    let before = old.node.self_node();
    // The others have formed anew while this one could not be heard of.
    let newer = format!(
        r#"{{"cluster":"{:016x}","generation":2}}"#,
        record.cluster.0 + (1 << 24)
    );
    let key = stage.key("cluster");
    stage.operator.update(&key, newer.into(), Expect::Any).await.unwrap();
    eventually(LONG, "a new incarnation", async || {
        let me = old.node.self_node();
        me.address == before.address && me.incarnation > before.incarnation
    })
    .await;
    // Nobody is there: it forms the generation after that.
    let record = old.bootstrap.joined().await.unwrap();
    eventually(LONG, "the third generation", async || {
        old.bootstrap
            .state()
            .record()
            .is_some_and(|record| record.generation == 3)
    })
    .await;
    assert!(record.generation != 2);
    stage.advertised(&[&old]).await;
}

async fn the_last_one_to_leave_removes_the_record(stage: Stage) {
    let actors = stage.cluster(2).await;
    for actor in &actors {
        assert!(stage.get("cluster").await.is_some());
        assert_eq!(actor.bootstrap.leave(LONG).await, End::Left { graceful: true });
    }
    assert_eq!(stage.get("cluster").await, None);
    assert_eq!(stage.seeds().await, Vec::<String>::new());
    assert_eq!(stage.get("leader").await, None);
}

async fn a_node_that_only_joins_never_forms_and_gives_up_at_its_deadline(stage: Stage) {
    let config = Config {
        join_only: true,
        give_up_after: Some(Duration::from_secs(2)),
        ..stage.config()
    };
    let node = stage.actor_with(config.clone()).await;
    let gave_up = NotJoined(End::GaveUp(Reason::NothingToJoin));
    assert_eq!(node.bootstrap.joined().await, Err(gave_up));
    assert_eq!(stage.get("cluster").await, None);
    let first = stage.actor().await;
    let record = first.bootstrap.joined().await.unwrap();
    stage.advertised(&[&first]).await;
    let joins = stage.actor_with(config).await;
    assert_eq!(joins.bootstrap.joined().await, Ok(record));
}
