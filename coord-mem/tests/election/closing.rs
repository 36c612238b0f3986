//! Closing what lies beneath a leader, or beneath one who waits.

use std::time::Duration;

use coord_api::{Coordinator, LossReason, Operation, Unelected};
use coord_mem::Fault;

use crate::stage::{LONG, with_both};

#[test]
fn a_session_closed_beneath_a_leader_ends_it_before_anybody_else_leads() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        let session = a.session.clone();
        let closing = stage.env.spawn(async move { session.close().await });
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        assert!(!first.is_valid() && first.term().is_stopped() && second.is_valid());
        assert_eq!(first.lost().await, Unelected::Session(LossReason::Closed));
        closing.join().await.unwrap().unwrap();
        assert!(a.election.campaign().await.unwrap_err().is_closed());
    });
}

#[test]
fn a_coordinator_closed_beneath_a_leader_ends_it_before_anybody_else_leads() {
    for delay in [0, 1, 5, 50] {
        with_both(async |stage| {
            let (a, b) = (stage.actor("a"), stage.actor("b"));
            let first = a.lead().await;
            let waiting = b.campaign();
            stage.moment().await;
            a.faults
                .next(Operation::Close, Fault::Delay(Duration::from_millis(delay)));
            let coordinator = a.spy.clone();
            let closing = stage.env.spawn(async move { coordinator.close().await });
            let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
            assert!(!first.is_valid(), "{:?}: both lead", stage.recipe);
            assert!(second.is_valid());
            let reason = stage.in_time("loss", first.lost()).await;
            assert_eq!(reason, Unelected::Session(LossReason::Closed));
            closing.join().await.unwrap().unwrap();
            // Nothing to wait for: the lease is gone with the coordinator.
            stage.in_time("resign", first.resign()).await.unwrap();
        });
    }
}

#[test]
fn whatever_is_closed_beneath_one_who_waits_ends_its_campaign() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let _first = a.lead().await;
        let (b, c, d) = (stage.actor("b"), stage.actor("c"), stage.actor("d"));
        let waiting = [b.campaign(), c.campaign(), d.campaign()];
        stage.moment().await;
        b.session.close().await.unwrap();
        c.spy.close().await.unwrap();
        d.election.close().await;
        for campaign in waiting {
            let ended = stage.in_time("the end", campaign.join()).await.unwrap();
            assert!(ended.unwrap_err().is_closed());
        }
        stage.moment().await;
        assert_eq!(stage.entries().await.len(), 1, "only the leader's");
    });
}

#[test]
fn closing_an_election_leaves_a_held_leadership_invalid_and_its_entry_to_the_holder() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let closed = a.env.timeout_at(a.env.now() + LONG, a.election.close()).await;
        assert!(closed.is_some(), "it does not wait for what its caller may hold");
        assert!(!leadership.is_valid() && leadership.term().is_stopped());
        assert_eq!(leadership.lost().await, Unelected::Closed);
        stage.moment().await;
        assert_eq!(stage.entries().await.len(), 1, "the work under it may still go on");
        drop(leadership);
        stage.moment().await;
        assert_eq!(stage.entries().await, []);
    });
}
