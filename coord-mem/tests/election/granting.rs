//! Who may lead, and who may not.

use std::time::Duration;

use coord_api::{Create, CreateMode, Election, ElectionConfig, Expect, Operation, Recipe, margin};
use coord_mem::{Fault, GiveUp};

use crate::stage::{LONG, TTL, with, with_both};

#[test]
fn a_waiting_candidate_whose_session_died_starts_over_with_a_new_entry() {
    with(Recipe::Sequence, async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        let old = stage.entries().await[1].created;
        b.faults.end_lease(b.session.lease().unwrap().lease);
        stage.env.sleep(TTL).await;
        first.resign().await.unwrap();
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        assert!(second.token() > old);
        assert_eq!(stage.entries().await.len(), 1);
    });
}

#[test]
fn a_waiting_candidate_whose_entry_was_deleted_starts_over() {
    with(Recipe::Sequence, async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        let old = stage.entries().await.remove(1);
        stage.client.delete(&old.key, Expect::Any).await.unwrap();
        stage.moment().await;
        assert_eq!(stage.entries().await.len(), 2, "it has its place again");
        first.resign().await.unwrap();
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        assert!(second.token() > old.created);
    });
}

#[test]
fn a_candidate_that_stood_still_past_its_lease_does_not_lead_on_it() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let first = a.lead().await;
        let waiting = b.campaign();
        stage.moment().await;
        b.faults.pause();
        stage.env.sleep(TTL * 3).await;
        let gone = stage.entries().await.last().unwrap().created;
        first.resign().await.unwrap();
        b.faults.resume();
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        assert!(second.token() > gone && second.is_valid());
        assert_eq!(stage.entries().await.len(), 1);
    });
}

/// The watch of the own entry has not begun to see anything: the look itself must tell.
#[test]
fn an_entry_that_is_gone_or_another_s_at_the_look_is_not_led_with() {
    with_both(async |stage| {
        let a = stage.actor("a");
        stage.in_time("session", a.session.connected()).await.unwrap();
        for deletes in [true, false] {
            a.faults.next(Operation::Watch, Fault::Delay(Duration::from_secs(1)));
            let slow = Fault::Delay(Duration::from_millis(500));
            a.faults.next(Operation::Standing, slow);
            a.faults.next(Operation::Get, slow);
            let campaign = a.campaign();
            stage.moment().await;
            let made = stage.entries().await.remove(0);
            if deletes {
                stage.client.delete(&made.key, Expect::Any).await.unwrap();
            } else {
                stage.client.update(&made.key, "me".into(), Expect::Any).await.unwrap();
            }
            let leadership = stage.in_time("a", campaign.join()).await.unwrap().unwrap();
            assert!(leadership.token() > made.created && leadership.is_valid());
            a.faults.clear();
            leadership.resign().await.unwrap();
        }
    });
}

#[test]
fn a_reconnect_keeps_the_place_in_the_queue() {
    with(Recipe::Sequence, async |stage| {
        let actors: Vec<_> = ["a", "b", "c"].map(|name| stage.actor(name)).into();
        let first = actors[0].lead().await;
        let second = actors[1].campaign();
        stage.moment().await;
        let _third = actors[2].campaign();
        stage.moment().await;
        let before = stage.entries().await;
        for actor in &actors {
            actor.faults.cut();
        }
        stage.env.sleep(TTL / 4).await;
        for actor in &actors {
            actor.faults.heal();
        }
        stage.moment().await;
        assert_eq!(stage.entries().await, before);
        assert!(first.is_valid(), "the leader goes on under the same token");
        first.resign().await.unwrap();
        let second = stage.in_time("b", second.join()).await.unwrap().unwrap();
        assert_eq!(second.token(), before[1].created);
    });
}

#[test]
fn a_dead_middle_waiter_does_not_promote_the_one_behind_it() {
    with(Recipe::Sequence, async |stage| {
        let (a, b, c) = (stage.actor("a"), stage.actor("b"), stage.actor("c"));
        let first = a.lead().await;
        let middle = b.campaign();
        stage.moment().await;
        let mut last = std::pin::pin!(c.campaign().join());
        stage.moment().await;
        drop(middle);
        b.session.close().await.unwrap();
        assert!(stage.env.timeout_at(stage.env.now() + LONG, &mut last).await.is_none());
        assert!(first.is_valid());
        first.resign().await.unwrap();
        assert!(stage.in_time("c", last).await.unwrap().unwrap().is_valid());
    });
}

/// The first copy of the leader's create arrives after its entry was deleted, and makes the same name again.
#[test]
fn another_entry_of_the_predecessors_name_is_not_waited_for() {
    with(Recipe::Sequence, async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let late = Fault::ArriveLate(GiveUp::AtOnce, Duration::from_secs(2));
        a.faults.next(Operation::Create, late);
        let _first = stage.in_time("a", a.lead()).await;
        let waiting = b.campaign();
        stage.moment().await;
        let [before, own] = &stage.entries().await[..] else {
            panic!("two contend");
        };
        // Nobody sees the deletion as such: one stands still until all is over, the other cannot tell anybody.
        b.faults.pause();
        a.faults.swallow();
        stage.client.delete(&before.key, Expect::Any).await.unwrap();
        stage.env.sleep(Duration::from_millis(2500)).await;
        let again = stage.client.get(&before.key).await.unwrap().unwrap();
        assert!(again.created > own.created && b.session.lease().is_some());
        b.faults.resume();
        stage.moment().await;
        assert!(
            waiting.is_finished(),
            "the first in the order of creation waits for a later one"
        );
        assert_eq!(waiting.join().await.unwrap().unwrap().token(), own.created);
    });
}

#[test]
fn a_live_lease_is_never_taken_over_whatever_its_value() {
    with(Recipe::Cas, async |stage| {
        let (a, b) = (stage.actor("same"), stage.actor("same"));
        let first = a.lead().await;
        let value = stage.entries().await.remove(0).value;
        let mut waiting = std::pin::pin!(b.campaign().join());
        // Not even a candidate that would write the very same bytes.
        let own = stage.client.grant(TTL).await.unwrap();
        let create = Create::new(&stage.env, stage.key.clone(), value, CreateMode::Ephemeral(own.lease));
        assert!(stage.client.create(&create).await.unwrap_err().holder().is_some());
        assert!(
            stage
                .env
                .timeout_at(stage.env.now() + LONG, &mut waiting)
                .await
                .is_none()
        );
        assert!(first.is_valid());
    });
}

#[test]
fn two_of_one_name_are_two() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("host"), stage.actor("host"));
        let first = a.lead().await;
        let mut observer = b.election.observe();
        let one = stage.in_time("observer", observer.changed()).await.unwrap();
        let waiting = b.campaign();
        stage.moment().await;
        assert!(!waiting.is_finished() && first.is_valid());
        first.resign().await.unwrap();
        let second = stage.in_time("b", waiting.join()).await.unwrap().unwrap();
        stage.moment().await;
        let (one, other) = (one.leader().cloned().unwrap(), observer.current());
        let other = other.leader().unwrap();
        assert_eq!((one.name.as_str(), other.name.as_str()), ("host", "host"));
        assert_ne!(one.incarnation, other.incarnation);
        assert_eq!(other.token, second.token());
    });
}

#[test]
fn two_handles_on_one_session_are_two_candidates() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let first = a.lead().await;
        let other = Election::new(&a.session, stage.config("b"));
        let again = a.env.timeout_at(a.env.now() + LONG, a.election.campaign()).await;
        assert!(again.is_none(), "not even the same handle leads twice");
        let too = a.env.timeout_at(a.env.now() + LONG, other.campaign()).await;
        assert!(too.is_none() && first.is_valid());
        stage.moment().await;
        assert_eq!(stage.entries().await.len(), 1, "dropped campaigns leave nothing behind");
        first.resign().await.unwrap();
        assert!(stage.in_time("b", other.campaign()).await.unwrap().is_valid());
    });
}

#[test]
fn every_leadership_has_a_higher_token_than_those_before() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let mut last = 0;
        for round in 0..6 {
            let actor = if round % 2 == 0 { &a } else { &b };
            let leadership = stage.in_time("leader", actor.election.campaign()).await.unwrap();
            assert!(leadership.token() > last);
            last = leadership.token();
            match round {
                2 => actor.faults.end_lease(actor.session.lease().unwrap().lease),
                3 => {
                    let entry = stage.entries().await.remove(0);
                    stage.client.delete(&entry.key, Expect::Any).await.unwrap();
                }
                _ => leadership.resign().await.unwrap(),
            }
        }
    });
}

#[test]
fn a_stop_within_that_no_renewal_could_outrun_is_refused() {
    with_both(async |stage| {
        let a = stage.actor("a");
        for stop_within in [TTL / 2 - margin(TTL) + Duration::from_millis(1), TTL, Duration::MAX] {
            let config = ElectionConfig {
                stop_within,
                ..stage.config("a")
            };
            let refused = Election::new(&a.session, config).campaign().await.unwrap_err();
            assert!(
                refused.is_definite() && refused.to_string().contains("stop_within"),
                "{refused}"
            );
        }
    });
}
