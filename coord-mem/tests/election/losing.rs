//! How leadership ends, and how that is told.

use std::ops::ControlFlow;
use std::time::Duration;

use coord_api::{ElectionEvent, Expect, LossReason, Unelected, margin};

use crate::stage::{LONG, TTL, with_both};

#[test]
fn a_cut_off_leader_stops_at_its_own_deadline_without_a_word_from_the_store() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        a.faults.swallow();
        let (stop_at, valid_until) = (leadership.stop_at(), leadership.valid_until());
        stage.in_time("stop", leadership.term().stopped()).await;
        assert!(a.env.now() <= stop_at + Duration::from_millis(2));
        assert!(leadership.is_valid(), "it has still time to stop");
        let reason = stage.in_time("loss", leadership.lost()).await;
        assert!(matches!(reason, Unelected::Session(_)), "{reason}");
        assert!(a.env.now() <= valid_until - margin(TTL) + Duration::from_millis(2));
        assert_eq!(stage.entries().await.len(), 1, "the store still keeps the lease");
    });
}

#[test]
fn an_expired_lease_always_ends_in_the_loss_signal() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let mut events = a.election.events();
        let leadership = a.lead().await;
        let token = leadership.token();
        a.faults.end_lease(a.session.lease().unwrap().lease);
        stage.in_time("loss", leadership.lost()).await;
        let mut told = vec![];
        while let Some(event) = a.env.timeout_at(a.env.now() + TTL, events.next()).await {
            told.extend(event);
        }
        let unelected = |event: &&ElectionEvent| matches!(event, ElectionEvent::Unelected { .. });
        assert!(told.contains(&ElectionEvent::Elected { token }));
        assert_eq!(told.iter().filter(unelected).count(), 1, "{told:?}");
    });
}

#[test]
fn validity_is_computed_from_the_clock_and_never_cached() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        // No task of the process runs any more; its clock does.
        a.faults.pause();
        stage.env.sleep(TTL).await;
        assert!(!leadership.is_valid());
        a.faults.resume();
        let reason = stage.in_time("loss", leadership.lost()).await;
        assert_eq!(reason, Unelected::Session(LossReason::ClockJumped));
    });
}

#[test]
fn a_deleted_or_hijacked_entry_ends_leadership_as_soon_as_it_is_seen() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let key = stage.entries().await.remove(0).key;
        stage.client.delete(&key, Expect::Any).await.unwrap();
        assert_eq!(leadership.lost().await, Unelected::Deleted);
        let leadership = stage.in_time("again", a.lead()).await;
        let key = stage.entries().await.remove(0).key;
        stage.client.update(&key, "me".into(), Expect::Any).await.unwrap();
        assert_eq!(leadership.lost().await, Unelected::Hijacked);
        assert!(!leadership.is_valid() && leadership.term().is_stopped());
    });
}

#[test]
fn it_contends_again_after_every_kind_of_loss_and_ends_only_when_closed() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let (led, mut leads) = tokio::sync::mpsc::unbounded_channel();
        let election = a.election.clone();
        let running = a.env.spawn(async move {
            let run = election.run_while_leader(|term| {
                let _ = led.send(term.token());
                async move {
                    term.stopped().await;
                    ControlFlow::<()>::Continue(())
                }
            });
            run.await
        });
        for round in 0..4 {
            stage.in_time("to lead", leads.recv()).await.unwrap();
            match round {
                0 => a.faults.end_lease(a.session.lease().unwrap().lease),
                1 => {
                    a.faults.cut();
                    stage.env.sleep(TTL * 2).await;
                    a.faults.heal();
                }
                2 => {
                    let key = stage.entries().await.remove(0).key;
                    stage.client.delete(&key, Expect::Any).await.unwrap();
                }
                _ => a.env.jump(TTL * 2),
            }
        }
        stage.in_time("to lead", leads.recv()).await.unwrap();
        assert!(!running.is_finished());
        a.election.close().await;
        let ended = stage.in_time("the end", running.join()).await.unwrap();
        assert!(ended.unwrap_err().is_closed(), "reported");
    });
}

#[test]
fn work_that_overruns_is_reported() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let mut events = a.election.events();
        let election = a.election.clone();
        let env = a.env.clone();
        let _running = a.env.spawn(async move {
            let run = election.run_while_leader(async |term| {
                term.stopped().await;
                env.sleep(LONG).await;
                ControlFlow::<()>::Continue(())
            });
            run.await
        });
        stage.moment().await;
        a.faults.swallow();
        let overran = async {
            while let Some(event) = events.next().await {
                if let ElectionEvent::Overran { token, .. } = event {
                    return Some(token);
                }
            }
            None
        };
        assert!(stage.in_time("report", overran).await.is_some());
    });
}
