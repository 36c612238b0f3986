//! What is left behind: nothing, and nobody else's is touched.

use std::ops::ControlFlow;
use std::time::Duration;

use coord_api::{Operation, Recipe};
use coord_mem::{Fault, GiveUp};

use crate::stage::{TTL, with, with_both};

#[test]
fn resigning_never_deletes_the_successors_entry() {
    with(Recipe::Cas, async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        // It hears nothing, and resigns what is long another's.
        a.faults.swallow();
        a.faults.end_lease(a.session.lease().unwrap().lease);
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        a.faults.heal();
        first.resign().await.unwrap();
        stage.moment().await;
        assert_eq!(stage.entries().await[0].created, second.token());
        assert!(second.is_valid());
    });
}

#[test]
fn a_release_is_tried_again_until_the_entry_is_gone() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        for fault in [
            Fault::LoseRequest(GiveUp::AtOnce),
            Fault::NotSent,
            Fault::LoseRequest(GiveUp::AtDeadline),
            Fault::LoseAnswer(GiveUp::AtOnce),
        ] {
            a.faults.next(Operation::Delete, fault);
        }
        leadership.resign().await.unwrap();
        assert_eq!(stage.entries().await, [], "resign returns when it is gone, not before");
    });
}

/// The session gives the lease up before the store does, and the leadership has lasted for many renewals.
#[test]
fn resigning_what_was_lost_returns_when_the_entry_is_gone() {
    with_both(async |stage| {
        let a = stage.actor("a");
        for heals in [true, false] {
            let leadership = stage.in_time("a", a.lead()).await;
            stage.env.sleep(TTL * 5).await;
            a.faults.swallow();
            leadership.lost().await;
            assert_eq!(stage.entries().await.len(), 1, "the lease still lives");
            if heals {
                a.faults.heal();
            }
            stage.in_time("resign", leadership.resign()).await.unwrap();
            assert_eq!(stage.entries().await, []);
            a.faults.heal();
        }
    });
}

#[test]
fn a_dropped_leadership_or_resignation_is_released_in_the_background() {
    with_both(async |stage| {
        let a = stage.actor("a");
        drop(a.lead().await);
        stage.moment().await;
        assert_eq!(stage.entries().await, []);
        let leadership = a.lead().await;
        a.faults.next(Operation::Delete, Fault::LoseRequest(GiveUp::AtDeadline));
        let given_up = a.env.timeout_at(a.env.now() + TTL / 100, leadership.resign()).await;
        assert!(given_up.is_none());
        stage.env.sleep(TTL * 4).await;
        assert_eq!(stage.entries().await, []);
        assert!(
            a.session.lease().is_some_and(|lease| lease.epoch == 1),
            "not by the end of the lease"
        );
    });
}

#[test]
fn a_closed_election_does_not_come_back_to_life() {
    with_both(async |stage| {
        let a = stage.actor("a");
        // The answer comes after the close: its continuation must not lead.
        a.faults
            .next(Operation::Create, Fault::DelayAnswer(Duration::from_secs(1)));
        let campaign = a.campaign();
        stage.moment().await;
        a.election.close().await;
        assert!(campaign.join().await.unwrap().unwrap_err().is_closed());
        assert!(a.election.campaign().await.unwrap_err().is_closed());
        stage.env.sleep(TTL).await;
        assert_eq!(stage.entries().await, []);
        let run = a.election.run_while_leader(async |_| ControlFlow::<()>::Continue(()));
        assert!(run.await.unwrap_err().is_closed());
    });
}

/// The first copy of the create is still under way when the key is found taken, and when the leadership is long over.
#[test]
fn a_create_that_was_refused_cannot_arrive_later() {
    with(Recipe::Cas, async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = b.lead().await;
        let late = Fault::ArriveLate(GiveUp::AtOnce, Duration::from_secs(3));
        a.faults.next(Operation::Create, late);
        let waiting = a.campaign();
        stage.env.sleep(Duration::from_secs(1)).await;
        first.resign().await.unwrap();
        let second = stage.in_time("a", waiting.join()).await.unwrap().unwrap();
        second.resign().await.unwrap();
        stage.env.sleep(TTL).await;
        assert_eq!(stage.entries().await, []);
    });
}

#[test]
fn a_copy_of_the_create_that_arrives_after_the_release_does_not_bring_the_entry_back() {
    with_both(async |stage| {
        let a = stage.actor("a");
        stage.in_time("session", a.session.connected()).await.unwrap();
        let late = Fault::ArriveLate(GiveUp::AtOnce, Duration::from_secs(3));
        a.faults.next(Operation::Create, late);
        a.lead().await.resign().await.unwrap();
        assert!(
            a.env.now().since_start() < Duration::from_secs(3),
            "the copy is still under way"
        );
        stage.env.sleep(TTL).await;
        assert_eq!(stage.entries().await, []);
        assert!(a.session.lease().is_some_and(|lease| lease.epoch == 1));
    });
}

#[test]
fn a_campaign_dropped_while_its_create_is_under_way_leaves_nothing() {
    with_both(async |stage| {
        let a = stage.actor("a");
        stage.moment().await;
        for fault in [
            Fault::ArriveLate(GiveUp::AtDeadline, Duration::from_millis(700)),
            Fault::Delay(Duration::from_millis(700)),
            Fault::LoseAnswer(GiveUp::AtDeadline),
        ] {
            a.faults.next(Operation::Create, fault);
            let gone = a.env.timeout_at(a.env.now() + TTL / 100, a.election.campaign()).await;
            assert!(gone.is_none());
            stage.env.sleep(TTL * 3).await;
            assert_eq!(stage.entries().await, [], "{fault:?}");
        }
        assert!(
            a.session.lease().is_some_and(|lease| lease.epoch == 1),
            "not by the end of the lease"
        );
    });
}

#[test]
fn the_entry_is_released_only_after_the_work_has_stopped() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let (finish, finished) = tokio::sync::watch::channel(false);
        let election = a.election.clone();
        let running = a.env.spawn(async move {
            let run = election.run_while_leader(|_| {
                let mut finished = finished.clone();
                async move {
                    let _ = finished.wait_for(|finished| *finished).await;
                    ControlFlow::Break(())
                }
            });
            run.await
        });
        stage.moment().await;
        let closing = a.election.clone();
        let closed = a.env.spawn(async move { closing.close().await });
        stage.env.sleep(TTL * 2).await;
        assert!(!closed.is_finished());
        assert_eq!(stage.entries().await.len(), 1, "told to stop, not stopped: still held");
        finish.send_replace(true);
        stage.in_time("close", closed.join()).await.unwrap();
        assert!(running.is_finished());
        assert_eq!(stage.entries().await, []);
    });
}

#[test]
fn a_leader_costs_no_write_beyond_the_renewals_of_its_session() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let (writes, renewals) = (a.writes(), a.spy.calls(Operation::Renew).len());
        assert_eq!(writes, 1);
        stage.env.sleep(TTL * 100).await;
        assert!(leadership.is_valid());
        assert_eq!(a.writes(), writes);
        let renewals = a.spy.calls(Operation::Renew).len() - renewals;
        assert!((290..=310).contains(&renewals), "a third of the ttl apart: {renewals}");
    });
}

#[test]
fn a_hand_over_is_one_delete_and_one_look_however_many_wait() {
    with(Recipe::Sequence, async |stage| {
        for count in [2, 16, 64] {
            let actors: Vec<_> = (0..count).map(|who| stage.actor(&format!("c{who}"))).collect();
            let mut waiting = vec![];
            for actor in &actors {
                waiting.push(actor.campaign());
                stage.moment().await;
            }
            let mut waiting = waiting.into_iter();
            let first = waiting.next().unwrap().join().await.unwrap().unwrap();
            let calls = || -> usize {
                let renewals = |actor: &crate::stage::Actor| actor.spy.calls(Operation::Renew).len();
                actors.iter().map(|actor| actor.spy.count() - renewals(actor)).sum()
            };
            let (before, checked) = (calls(), actors[0].spy.calls(Operation::Renew).len());
            first.resign().await.unwrap();
            let second = waiting.next().unwrap().join().await.unwrap().unwrap();
            stage.moment().await;
            assert_eq!(calls() - before, 2, "{count} candidates");
            let renewals = actors[0].spy.calls(Operation::Renew).len() - checked;
            assert_eq!(renewals, 0, "who resigned has no reason to doubt its lease");
            drop((second, waiting));
            stage.moment().await;
        }
    });
}
