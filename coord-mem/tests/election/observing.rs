//! What those see who take no part.

use coord_api::{Observation, Recipe};

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
