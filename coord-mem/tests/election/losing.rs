//! How leadership ends, and how that is told.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Create, CreateMode, Election, ElectionEvent, ErrorKind, Expect, Leader, LossReason, Operation, Recipe, Session,
    SessionConfig, Unelected, margin,
};
use coord_mem::{Fault, GiveUp};

use crate::mutant::{Mutant, Wrong};
use crate::stage::{LONG, TTL, with, with_both};

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
fn work_learns_from_the_clock_that_it_is_to_stop_though_no_task_has_run() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let (term, stop_at) = (leadership.term(), leadership.stop_at());
        a.faults.pause();
        stage.env.sleep(stop_at - a.env.now()).await;
        assert!(leadership.is_valid(), "there is time left, to stop in");
        assert!(term.is_stopped());
        // A renewal that was under way comes back now: leadership goes on, and the call to stop stands.
        a.faults.resume();
        stage.moment().await;
        assert!(leadership.is_valid() && leadership.stop_at() > stop_at);
        assert!(term.is_stopped() && term.cancellation().is_cancelled());
    });
}

#[test]
fn a_machine_that_was_suspended_finds_its_leadership_lost_and_its_work_stopped() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let term = leadership.term();
        a.env.jump(TTL);
        // Both at once, and before any task has run.
        assert!(!leadership.is_valid() && term.is_stopped());
        let jumped = a.env.now();
        assert_eq!(term.lost().await, Unelected::Session(LossReason::ClockJumped));
        term.stopped().await;
        assert_eq!(a.env.now(), jumped);
    });
}

#[test]
fn an_entry_lost_between_its_create_and_the_look_is_not_led_with() {
    with_both(async |stage| {
        let a = stage.actor("a");
        stage.in_time("session", a.session.connected()).await.unwrap();
        for (operation, ends_the_lease) in [(Operation::Standing, true), (Operation::Standing, false)] {
            // The look travels: when it arrives, the entry is gone.
            let slow = Fault::Delay(Duration::from_millis(500));
            a.faults.next(operation, slow);
            a.faults.next(Operation::Get, slow);
            let campaign = a.campaign();
            stage.moment().await;
            let made = stage.entries().await.remove(0);
            match ends_the_lease {
                true => a.faults.end_lease(a.session.lease().unwrap().lease),
                false => stage.client.delete(&made.key, Expect::Any).await.unwrap(),
            }
            let leadership = stage.in_time("a", campaign.join()).await.unwrap().unwrap();
            assert!(leadership.token() > made.created && leadership.is_valid());
            a.faults.clear();
            leadership.resign().await.unwrap();
        }
    });
}

#[test]
fn a_lease_that_somebody_ended_is_replaced_at_once() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let first = a.lead().await;
        stage.env.sleep(Duration::from_millis(20)).await;
        let ended = a.env.now();
        a.faults.end_lease(a.session.lease().unwrap().lease);
        first.lost().await;
        drop(first);
        let second = stage.in_time("a", a.lead()).await;
        let took = a.env.now() - ended;
        assert!(second.is_valid());
        assert!(took < TTL / 6, "{took:?}: not only at the next renewal");
    });
}

#[test]
fn a_proclamation_that_comes_too_late_fails_by_its_own_deadline() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let mut first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        a.faults.swallow();
        let valid_until = first.valid_until();
        let refused = first.proclaim("too late").await.unwrap_err();
        assert!(refused.is_lease_lost() && !first.is_valid(), "{refused}");
        assert!(refused.is_unknown(), "it was sent, and may have arrived: {refused}");
        assert!(a.env.now() <= valid_until, "no later than leadership ends");
        let refused = first.proclaim("much too late").await.unwrap_err();
        assert!(refused.is_lease_lost() && refused.is_definite(), "not even tried");
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        let observer = b.election.observe();
        stage.moment().await;
        let leader = observer.current().leader().cloned().unwrap();
        assert_eq!((leader.token, leader.proclaimed), (second.token(), None));
    });
}

/// Nothing is sent, and each attempt waits longer before it tries again.
#[test]
fn a_proclamation_does_not_outlast_its_leadership_between_two_attempts() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let mut leadership = a.lead().await;
        let over = leadership.valid_until() - margin(TTL);
        a.faults.cut();
        let refused = leadership.proclaim("too late").await.unwrap_err();
        assert!(refused.is_lease_lost() && refused.is_definite(), "{refused}");
        let late = a.env.now() - over;
        assert!(late <= Duration::from_millis(2), "{late:?} after its leadership");
    });
}

#[test]
fn a_proclamation_that_may_have_happened_is_not_reported_as_one_that_has_not() {
    with_both(async |stage| {
        let client = stage.store.client();
        let faults = client.faults();
        let refusing = Arc::new(Wrong::new(client, Mutant::PermitsOneUpdate));
        let session = Session::open(refusing, SessionConfig::default()).unwrap();
        let mut leadership = Election::new(&session, stage.config("a")).campaign().await.unwrap();
        faults.next(
            Operation::Update,
            Fault::ArriveLate(GiveUp::AtOnce, Duration::from_secs(1)),
        );
        let refused = leadership.proclaim("later").await.unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::PermissionDenied(_)) && refused.is_unknown(),
            "{refused:?}"
        );
        stage.env.sleep(Duration::from_secs(2)).await;
        let now = stage.entries().await.remove(0);
        assert_eq!(Leader::of(&now).proclaimed.as_deref(), Some("later"));
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

/// It stood still meanwhile: of the deletion it hears only that there is another entry now.
#[test]
fn an_entry_that_was_deleted_and_made_again_by_another_ends_leadership() {
    with(Recipe::Cas, async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        a.faults.pause();
        stage.client.delete(&stage.key, Expect::Any).await.unwrap();
        let create = Create::new(&stage.env, stage.key.clone(), "me", CreateMode::Persistent);
        stage.client.create(&create).await.unwrap();
        a.faults.resume();
        stage.moment().await;
        assert!(!leadership.is_valid());
        assert_eq!(leadership.lost().await, Unelected::Deleted);
    });
}

/// The watch of the own entry has not begun to see anything: the proclamation is what finds out.
#[test]
fn a_proclamation_never_writes_over_another_s_and_ends_a_leadership_that_was_hijacked() {
    with_both(async |stage| {
        let a = stage.actor("a");
        a.faults.next(Operation::Watch, Fault::Delay(Duration::from_secs(1)));
        let mut leadership = a.lead().await;
        let key = stage.entries().await.remove(0).key;
        stage.client.update(&key, "me".into(), Expect::Any).await.unwrap();
        let refused = leadership.proclaim("mine").await.unwrap_err();
        assert!(refused.is_lease_lost() && !leadership.is_valid(), "{refused}");
        assert_eq!(leadership.lost().await, Unelected::Hijacked);
        assert_eq!(stage.entries().await.remove(0).value, "me");
    });
}

#[test]
fn a_watch_that_cannot_be_had_at_first_is_asked_for_again() {
    with_both(async |stage| {
        let (a, eye) = (stage.actor("a"), stage.actor("eye"));
        a.faults.next(Operation::Watch, Fault::NotSent);
        eye.faults.next(Operation::Watch, Fault::NotSent);
        let observer = eye.election.observe();
        let leadership = a.lead().await;
        stage.moment().await;
        let seen = observer.current();
        assert_eq!(seen.leader().map(|leader| leader.token), Some(leadership.token()));
        let key = stage.entries().await.remove(0).key;
        stage.client.delete(&key, Expect::Any).await.unwrap();
        stage.moment().await;
        assert!(!leadership.is_valid(), "it watches its entry all the same");
        assert_eq!((a.faults.scripted(), eye.faults.scripted()), (0, 0));
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
