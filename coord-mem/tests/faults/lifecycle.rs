//! Close, clean-up and faults at random.

use super::*;

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
