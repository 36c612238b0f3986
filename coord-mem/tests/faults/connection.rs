//! Connections, watches and stopped clients.

use super::*;

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
