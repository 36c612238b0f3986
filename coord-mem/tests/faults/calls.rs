//! What happens to single calls.

use super::*;

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
