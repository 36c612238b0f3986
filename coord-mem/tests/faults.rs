//! The faults, one behaviour per test, all in virtual time.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Class, Coordinator, CoordinatorExt, Create, CreateMode, Env, ErrorKind, Expect, Instant, Key, Operation, Target,
    Watch, WatchEvent,
};
use coord_mem::{Fault, GiveUp, MemClient, MemStore, Odds, StoreOptions};
use futures::{FutureExt, poll};

const TTL: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

fn store() -> MemStore {
    MemStore::new(&Env::simulated(7))
}

fn pair() -> (Arc<MemClient>, Arc<MemClient>) {
    let store = store();
    (store.client(), store.client())
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn create(client: &MemClient, text: &str) -> Create {
    Create::new(client.env(), key(text), "value", CreateMode::Persistent)
}

async fn exists(client: &MemClient, text: &str) -> bool {
    client.get(&key(text)).await.unwrap().is_some()
}

async fn event(watch: &mut Watch) -> WatchEvent {
    watch
        .next()
        .await
        .expect("the watch goes on")
        .expect("without an error")
}

fn is_silent(watch: &mut Watch) -> bool {
    watch.next().now_or_never().is_none()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_before_sending_is_not_sent_and_has_no_effect() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::NotSent);
    let error = a.create(&create(&a, "/x")).await.unwrap_err();
    assert_eq!(error.class(), Class::NotSent);
    assert!(error.is_transient());
    assert!(!exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_at_once_and_the_write_has_happened() {
    let (a, b) = pair();
    let started = a.env().now();
    a.faults().next(Operation::Create, Fault::LoseAnswer(GiveUp::AtOnce));
    let error = a.create(&create(&a, "/x")).await.unwrap_err();
    assert!(error.is_unknown());
    assert_eq!(a.env().now(), started);
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_at_the_deadline_of_the_view() {
    let (a, b) = pair();
    let started = a.env().now();
    a.faults()
        .next(Operation::Create, Fault::LoseAnswer(GiveUp::AtDeadline));
    let error = a.within(SECOND).create(&create(&a, "/x")).await.unwrap_err();
    assert!(error.is_unknown());
    assert_eq!(error.kind(), &ErrorKind::DeadlineExceeded(SECOND));
    assert_eq!(a.env().now() - started, SECOND);
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_unknown_and_the_write_never_happens() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::LoseRequest(GiveUp::AtOnce));
    assert!(a.create(&create(&a, "/x")).await.unwrap_err().is_unknown());
    b.env().sleep(Duration::from_secs(3600)).await;
    assert!(!exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_answer_is_lost_may_be_tried_again() {
    let (a, _) = pair();
    a.faults().next(Operation::Get, Fault::LoseAnswer(GiveUp::AtOnce));
    assert_eq!(a.get(&key("/x")).await.unwrap_err().class(), Class::NotSent);
    assert_eq!(a.get(&key("/x")).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_same_create_after_a_lost_answer_finds_its_own_entry() {
    let (a, b) = pair();
    let attempt = create(&a, "/x");
    a.faults().next(Operation::Create, Fault::LoseAnswer(GiveUp::AtOnce));
    a.create(&attempt).await.unwrap_err();
    let made = b.get(&key("/x")).await.unwrap().unwrap();
    assert_eq!(a.create(&attempt).await.unwrap(), made);
}

#[tokio::test(start_paused = true)]
async fn a_late_request_arrives_after_the_caller_has_given_up() {
    let (a, b) = pair();
    let late = Fault::ArriveLate(GiveUp::AtDeadline, SECOND);
    a.faults().next(Operation::Create, late);
    assert!(a.create(&create(&a, "/x")).await.unwrap_err().is_unknown());
    assert!(!exists(&b, "/x").await, "not found by looking is no proof");
    b.env().sleep(SECOND).await;
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_is_told_of_a_late_arrival_though_nobody_calls() {
    let (a, b) = pair();
    let mut watch = b.watch(&Target::Key(key("/x"))).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![]));
    let late = Fault::ArriveLate(GiveUp::AtOnce, SECOND);
    a.faults().next(Operation::Create, late);
    a.create(&create(&a, "/x")).await.unwrap_err();
    let started = b.env().now();
    assert!(matches!(event(&mut watch).await, WatchEvent::Put(_)));
    assert!(b.env().now() - started >= SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_and_the_same_create_again_make_one_entry() {
    let (a, _) = pair();
    let attempt = create(&a, "/x");
    a.faults()
        .next(Operation::Create, Fault::ArriveLate(GiveUp::AtOnce, SECOND));
    a.create(&attempt).await.unwrap_err();
    let made = a.create(&attempt).await.unwrap();
    a.env().sleep(2 * SECOND).await;
    assert_eq!(a.get(&key("/x")).await.unwrap(), Some(made));
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_create_that_arrives_late_has_no_effect() {
    let (a, b) = pair();
    let attempt = create(&a, "/x");
    a.faults()
        .next(Operation::Create, Fault::ArriveLate(GiveUp::AtOnce, SECOND));
    a.create(&attempt).await.unwrap_err();
    a.abandon(&attempt).await.unwrap();
    b.env().sleep(2 * SECOND).await;
    assert!(!exists(&b, "/x").await);
    assert_eq!(a.create(&attempt).await.unwrap_err().kind(), &ErrorKind::Abandoned);
}

#[tokio::test(start_paused = true)]
async fn a_fence_outlives_the_latest_arrival() {
    let (a, b) = pair();
    let attempt = create(&a, "/x");
    let days = Duration::from_secs(3 * 86_400);
    a.faults()
        .next(Operation::Create, Fault::ArriveLate(GiveUp::AtOnce, days));
    a.create(&attempt).await.unwrap_err();
    a.abandon(&attempt).await.unwrap();
    b.env().sleep(days - SECOND).await;
    a.abandon(&create(&a, "/y")).await.unwrap();
    b.env().sleep(2 * SECOND).await;
    assert!(!exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn abandoning_removes_what_the_create_made_and_nobody_elses() {
    let (a, b) = pair();
    let attempt = create(&a, "/x");
    a.faults().next(Operation::Create, Fault::LoseAnswer(GiveUp::AtOnce));
    a.create(&attempt).await.unwrap_err();
    a.abandon(&attempt).await.unwrap();
    assert!(!exists(&b, "/x").await);
    let other = b.create_persistent(&key("/x"), "other").await.unwrap();
    a.abandon(&attempt).await.unwrap();
    assert_eq!(b.get(&key("/x")).await.unwrap(), Some(other));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_request_takes_effect_and_answers_later() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::Delay(SECOND));
    let attempt = create(&a, "/x");
    let mut call = a.create(&attempt);
    assert!(poll!(&mut call).is_pending());
    assert!(!exists(&b, "/x").await);
    call.await.unwrap();
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_deadline_is_unknown_and_arrives_all_the_same() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::Delay(3 * SECOND));
    let error = a.within(SECOND).create(&create(&a, "/x")).await.unwrap_err();
    assert!(error.is_unknown());
    assert!(!exists(&b, "/x").await);
    b.env().sleep(2 * SECOND).await;
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_does_not_delay_the_effect() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::DelayAnswer(SECOND));
    let attempt = create(&a, "/x");
    let mut call = a.create(&attempt);
    assert!(poll!(&mut call).is_pending());
    assert!(exists(&b, "/x").await);
    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_dropped_under_way_takes_effect_by_itself() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::Delay(SECOND));
    let attempt = create(&a, "/x");
    {
        let mut call = a.create(&attempt);
        assert!(poll!(&mut call).is_pending());
    }
    b.env().sleep(SECOND).await;
    assert!(exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn validity_counts_from_sending_although_request_and_answer_are_slow() {
    let (a, _) = pair();
    for slow in [Fault::Delay(SECOND), Fault::DelayAnswer(SECOND)] {
        a.faults().next(Operation::Grant, slow);
        let sent = a.env().now();
        let grant = a.grant(TTL).await.unwrap();
        assert!(a.env().now() >= sent + SECOND);
        assert_eq!(grant.valid_until, sent + TTL);
    }
}

#[tokio::test(start_paused = true)]
async fn scripted_faults_meet_the_calls_of_their_operation_in_order() {
    let (a, _) = pair();
    let faults = a.faults();
    faults.next(Operation::Get, Fault::Pass);
    faults.next(Operation::Get, Fault::NotSent);
    faults.next_call(Fault::NotSent);
    assert_eq!(faults.scripted(), 3);
    a.get(&key("/x")).await.unwrap();
    a.create(&create(&a, "/x")).await.unwrap_err();
    a.get(&key("/x")).await.unwrap_err();
    assert_eq!(faults.scripted(), 0);
    a.get(&key("/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_client_s_faults_leave_the_others_alone() {
    let (a, b) = pair();
    a.faults().next_call(Fault::NotSent);
    a.faults().cut();
    b.create(&create(&b, "/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_over_a_cut_connection_are_not_sent() {
    let (a, b) = pair();
    a.faults().cut();
    let error = a.create(&create(&a, "/x")).await.unwrap_err();
    assert_eq!(error.class(), Class::NotSent);
    assert!(!exists(&b, "/x").await);
    a.faults().heal();
    a.create(&create(&a, "/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_when_the_connection_is_cut_is_unknown_at_once() {
    let (a, b) = pair();
    a.faults().next(Operation::Create, Fault::Delay(SECOND));
    let started = a.env().now();
    let attempt = create(&a, "/x");
    let mut call = a.create(&attempt);
    assert!(poll!(&mut call).is_pending());
    a.faults().cut();
    assert!(call.await.unwrap_err().is_unknown());
    assert_eq!(a.env().now(), started);
    b.env().sleep(SECOND).await;
    assert!(exists(&b, "/x").await, "it was under way already");
}

#[tokio::test(start_paused = true)]
async fn a_swallowing_connection_lets_calls_run_into_their_deadline() {
    let (a, b) = pair();
    a.faults().swallow();
    let started = a.env().now();
    assert!(a.create(&create(&a, "/x")).await.unwrap_err().is_unknown());
    assert_eq!(a.env().now() - started, a.capabilities().call_deadline);
    a.faults().heal();
    assert!(!exists(&b, "/x").await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_silent_while_cut_and_gets_a_resync_when_healed() {
    let (a, b) = pair();
    let mut watch = a.watch(&Target::Children(key("/d"))).await.unwrap();
    let gone = b.create_persistent(&key("/d/gone"), "").await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![gone.clone()]));
    a.faults().cut();
    b.delete(&gone.key, Expect::Any).await.unwrap();
    let new = b.create_persistent(&key("/d/new"), "").await.unwrap();
    assert!(is_silent(&mut watch));
    a.faults().heal();
    assert_eq!(event(&mut watch).await, WatchEvent::Resync(vec![new]));
    b.create_persistent(&key("/d/newer"), "").await.unwrap();
    assert!(matches!(event(&mut watch).await, WatchEvent::Put(_)));
}

#[tokio::test(start_paused = true)]
async fn a_forced_gap_is_a_resync_with_the_whole_state() {
    let (a, b) = pair();
    let entry = b.create_persistent(&key("/x"), "").await.unwrap();
    let mut watch = a.watch(&Target::Key(key("/x"))).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![entry.clone()]));
    a.faults().gap();
    assert_eq!(event(&mut watch).await, WatchEvent::Resync(vec![entry]));
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_although_its_client_is_cut() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    a.faults().cut();
    b.env().sleep(TTL).await;
    assert!(!exists(&b, "/e").await);
    a.faults().heal();
    assert!(a.renew(grant.lease).await.unwrap_err().is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ended_on_purpose_takes_its_entries_with_it_at_once() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    let entry = a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    let mut watch = b.watch(&Target::Key(key("/e"))).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![entry.clone()]));
    a.faults().end_lease(grant.lease);
    let (key, created) = (entry.key, entry.created);
    assert_eq!(event(&mut watch).await, WatchEvent::Delete { key, created });
    assert!(a.renew(grant.lease).await.unwrap_err().is_lease_lost());
}

/// A store whose acknowledgements prove three seconds less than they suggest.
async fn lagging(client: &MemClient) -> (coord_api::LeaseId, Instant) {
    let grant = client.grant(TTL).await.unwrap();
    client.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    assert_eq!(grant.valid_until, client.env().now() + TTL - 3 * SECOND);
    (grant.lease, grant.valid_until)
}

fn lagging_client() -> Arc<MemClient> {
    let options = StoreOptions {
        proof_lag: 3 * SECOND,
        ..StoreOptions::default()
    };
    MemStore::with_options(&Env::simulated(7), options).client()
}

#[tokio::test(start_paused = true)]
async fn with_a_lagging_proof_a_lease_still_lives_its_whole_ttl() {
    let client = lagging_client();
    let (_, valid_until) = lagging(&client).await;
    client.env().sleep_until(valid_until + 2 * SECOND).await;
    assert!(exists(&client, "/e").await);
    client.env().sleep(SECOND).await;
    assert!(!exists(&client, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ended_early_ends_at_valid_until_and_not_before() {
    let client = lagging_client();
    let (lease, valid_until) = lagging(&client).await;
    client.faults().end_lease_early(lease);
    client.env().sleep_until(valid_until - Duration::from_millis(1)).await;
    assert!(exists(&client, "/e").await);
    client.env().sleep_until(valid_until).await;
    assert!(!exists(&client, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_ends_early_was_acknowledged_and_lives_to_valid_until() {
    let client = lagging_client();
    let (lease, _) = lagging(&client).await;
    client.env().sleep(SECOND).await;
    client.faults().next(Operation::Renew, Fault::EndLeaseEarly);
    let renewed = client.renew(lease).await.unwrap();
    client
        .env()
        .sleep_until(renewed.valid_until - Duration::from_millis(1))
        .await;
    assert!(exists(&client, "/e").await);
    client.env().sleep_until(renewed.valid_until).await;
    assert!(client.renew(lease).await.unwrap_err().is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn a_paused_client_stands_still_while_its_lease_runs_out() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    let renewing = a.env().spawn({
        let a = a.clone();
        async move {
            loop {
                a.env().sleep(TTL / 3).await;
                if let Err(error) = a.renew(grant.lease).await {
                    return error;
                }
            }
        }
    });
    b.env().sleep(5 * TTL).await;
    assert!(exists(&b, "/e").await);
    a.faults().pause();
    b.env().sleep(TTL).await;
    assert!(!exists(&b, "/e").await);
    assert!(!renewing.is_finished());
    a.faults().resume();
    assert!(renewing.join().await.unwrap().is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_paused_client_waits_for_the_resume() {
    let (a, b) = pair();
    a.faults().pause();
    let attempt = create(&a, "/x");
    let mut call = a.create(&attempt);
    assert!(poll!(&mut call).is_pending());
    assert!(!exists(&b, "/x").await);
    a.faults().resume();
    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn close_over_a_cut_connection_fails_and_closes_all_the_same() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    let mut watch = a.watch(&Target::Key(key("/x"))).await.unwrap();
    event(&mut watch).await;
    a.faults().cut();
    assert_eq!(a.close().await.unwrap_err().class(), Class::NotSent);
    assert!(watch.next().await.unwrap().unwrap_err().is_closed());
    assert!(a.get(&key("/e")).await.unwrap_err().is_closed());
    assert!(exists(&b, "/e").await);
    b.env().sleep(TTL).await;
    assert!(!exists(&b, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_arrives_after_the_close_grants_nothing() {
    let (a, b) = pair();
    a.faults().next(Operation::Grant, Fault::Delay(SECOND));
    let (granted, closed) = futures::join!(a.grant(TTL), a.close());
    closed.unwrap();
    assert!(granted.unwrap_err().is_closed());
    b.get(&key("/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_answer_is_lost_is_not_left_at_the_store() {
    let store = store();
    let a = store.client();
    a.faults().next(Operation::Watch, Fault::LoseAnswer(GiveUp::AtOnce));
    a.watch(&Target::Key(key("/x"))).await.unwrap_err();
    assert_eq!(store.watch_count(), 0);
    a.faults()
        .next(Operation::Watch, Fault::ArriveLate(GiveUp::AtOnce, SECOND));
    a.watch(&Target::Key(key("/x"))).await.unwrap_err();
    a.env().sleep(2 * SECOND).await;
    assert_eq!(store.watch_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn when_the_last_handle_goes_the_store_s_task_and_watches_end() {
    let store = store();
    let a = store.client();
    a.grant(TTL).await.unwrap();
    let mut watch = a.watch(&Target::Key(key("/x"))).await.unwrap();
    event(&mut watch).await;
    tokio::task::yield_now().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 1);
    drop((store, a));
    assert!(watch.next().await.unwrap().unwrap_err().is_closed());
    tokio::task::yield_now().await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn seeded_faults_all_happen() {
    let (a, _) = pair();
    a.faults().seeded(Odds {
        not_sent: 0.2,
        lose_request: 0.2,
        lose_answer: 0.2,
        ..Odds::default()
    });
    let mut seen = [0; 3];
    for _ in 0..200 {
        let class = a.create(&create(&a, "/x")).await.map_err(|error| error.class());
        seen[match class {
            Err(Class::NotSent) => 0,
            Err(Class::Unknown) => 1,
            _ => 2,
        }] += 1;
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    a.faults().clear();
    a.get(&key("/x")).await.unwrap();
}
