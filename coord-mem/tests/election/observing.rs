//! What those see who take no part.

use std::sync::Arc;

use coord_api::{
    Election, ElectionConfig, ElectionEvent, Key, Observation, Observer, Prefixed, Recipe, Session, SessionConfig,
};

use crate::stage::{with, with_both};

#[test]
fn observers_see_each_leader_and_that_there_is_none() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("z"), stage.actor("a"));
        let mut observer = b.election.observe();
        assert_eq!(observer.current(), Observation::Unknown);
        assert_eq!(observer.changed().await, Some(Observation::NoLeader));
        let first = a.lead().await;
        let seen = observer.changed().await.unwrap();
        assert_eq!(seen.leader().map(|leader| leader.token), Some(first.token()));
        first.resign().await.unwrap();
        assert_eq!(observer.changed().await, Some(Observation::NoLeader));
        let second = b.lead().await;
        let seen = observer.changed().await.unwrap();
        assert_eq!(seen.leader().map(|leader| leader.token), Some(second.token()));
    });
}

#[test]
fn the_leader_seen_is_the_one_created_first_whatever_its_name() {
    with(Recipe::Sequence, async |stage| {
        // Names of entries are random: among so many orders, one by name would be another.
        let actors: Vec<_> = (0..8).map(|who| stage.actor(&format!("c{}", 9 - who))).collect();
        let mut waiting = vec![];
        for actor in &actors {
            waiting.push(actor.campaign());
            stage.moment().await;
        }
        let mut observer = actors[7].election.observe();
        for (actor, campaign) in actors.iter().zip(waiting) {
            let leadership = campaign.join().await.unwrap().unwrap();
            stage.moment().await;
            observer.changed().await;
            let leader = observer.current().leader().cloned().unwrap();
            assert_eq!(leader.token, leadership.token());
            assert_eq!(leader.name, actor.election.config().name);
            leadership.resign().await.unwrap();
        }
    });
}

#[test]
fn a_leader_can_change_what_it_proclaims_without_losing_its_place() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let mut leadership = a.lead().await;
        let observer = a.election.observe();
        leadership.proclaim("ready").await.unwrap();
        stage.moment().await;
        let leader = observer.current().leader().cloned().unwrap();
        assert_eq!(leader.proclaimed.as_deref(), Some("ready"));
        assert_eq!(leader.token, leadership.token());
        assert!(leadership.is_valid());
        leadership.resign().await.unwrap();
        assert_eq!(stage.entries().await, []);
    });
}

#[test]
fn an_observer_is_right_again_after_a_gap_or_an_outage() {
    with_both(async |stage| {
        let (a, b, eye) = (stage.actor("a"), stage.actor("b"), stage.actor("eye"));
        let observer = eye.election.observe();
        let first = a.lead().await;
        stage.moment().await;
        assert_eq!(
            observer.current().leader().map(|leader| leader.token),
            Some(first.token())
        );
        // While it is cut off, two leaders come and go.
        eye.faults.cut();
        first.resign().await.unwrap();
        let second = b.lead().await;
        second.resign().await.unwrap();
        let third = a.lead().await;
        stage.moment().await;
        eye.faults.heal();
        stage.moment().await;
        let leads = |observer: &Observer| observer.current().leader().map(|leader| leader.token);
        assert_eq!(leads(&observer), Some(third.token()));
        // A gap in which nothing has changed is no news; one in which the last leader went is.
        eye.faults.gap();
        stage.moment().await;
        assert_eq!(
            observer.current().leader().map(|leader| leader.token),
            Some(third.token())
        );
        eye.faults.swallow();
        third.resign().await.unwrap();
        stage.moment().await;
        eye.faults.heal();
        stage.moment().await;
        assert_eq!(observer.current(), Observation::NoLeader);
    });
}

#[test]
fn a_reader_of_events_that_fell_behind_goes_on_with_the_newest() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let mut events = a.election.events();
        let mut last = 0;
        for _ in 0..300 {
            let leadership = a.lead().await;
            last = leadership.token();
            leadership.resign().await.unwrap();
        }
        let mut told = vec![];
        while let Some(Some(event)) = a.env.timeout_at(a.env.now() + crate::stage::TTL, events.next()).await {
            told.push(event);
        }
        let unelected =
            |event: &ElectionEvent| matches!(event, ElectionEvent::Unelected { token, .. } if *token == last);
        assert!(told.iter().any(unelected), "the newest is there");
        assert!(told.len() < 300, "the oldest are not: {}", told.len());
        assert_eq!(told.last(), Some(&ElectionEvent::Leader(None)));
    });
}

#[test]
fn an_election_below_a_prefix_is_the_same_one_seen_from_elsewhere() {
    with_both(async |stage| {
        let inside = Arc::new(Prefixed::new(stage.store.client(), Key::new("/tenant").unwrap()));
        let session = Session::open(inside.clone(), SessionConfig::default()).unwrap();
        let within = Election::new(&session, stage.config("inside"));
        let from_within = Observer::new(inside, stage.key.clone(), stage.recipe);
        let outside = stage.actor("outside");
        let config = ElectionConfig {
            key: Key::new("/tenant/election").unwrap(),
            ..stage.config("outside")
        };
        let without = Election::new(&outside.session, config);
        let first = within.campaign().await.unwrap();
        stage.moment().await;
        let seen = from_within.current().leader().cloned().unwrap();
        assert_eq!((seen.name.as_str(), seen.token), ("inside", first.token()));
        let held = stage
            .env
            .timeout_at(stage.env.now() + crate::stage::LONG, without.campaign())
            .await;
        assert!(held.is_none() && first.is_valid());
        let mut second = std::pin::pin!(without.campaign());
        let soon = stage.env.now() + crate::stage::TTL;
        assert!(stage.env.timeout_at(soon, &mut second).await.is_none());
        first.resign().await.unwrap();
        let second = stage.in_time("outside", second).await.unwrap();
        stage.moment().await;
        assert_eq!(
            from_within.current().leader().map(|leader| leader.token),
            Some(second.token())
        );
        // Another prefix, or none, is another election.
        let elsewhere = stage.actor("elsewhere");
        assert!(elsewhere.lead().await.is_valid() && second.is_valid());
        session.coordinator().close().await.unwrap();
    });
}

/// Whatever is awaited must fit into a task of a runtime with several threads.
#[test]
fn everything_that_can_be_awaited_may_move_between_threads() {
    fn is_send(_: impl Send) {}
    with_both(async |stage| {
        let a = stage.actor("a");
        is_send(a.election.campaign());
        is_send(a.election.close());
        is_send(
            a.election
                .run_while_leader(|_| async { std::ops::ControlFlow::Break(()) }),
        );
        let (mut observer, mut events) = (a.election.observe(), a.election.events());
        is_send(observer.changed());
        is_send(events.next());
        let mut leadership = a.lead().await;
        let term = leadership.term();
        is_send(term.lost());
        is_send(term.stopped());
        is_send(leadership.lost());
        is_send(leadership.proclaim(""));
        is_send(leadership.resign());
    });
}
