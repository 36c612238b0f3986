//! Waiting for conditions.

use coord_harness::eventually;
use std::time::Duration;

#[tokio::test]
async fn returns_what_the_check_found() {
    let mut tries = 0;
    let found = eventually(Duration::from_secs(5), "three tries", || {
        tries += 1;
        let tries = tries;
        async move { (tries == 3).then_some(tries) }
    })
    .await;
    assert_eq!(found, 3);
}

#[tokio::test]
#[should_panic(expected = "not within 30ms: a miracle; last answer: none yet")]
async fn tells_what_it_waited_for_and_the_last_error() {
    eventually(Duration::from_millis(30), "a miracle", async || {
        Err::<(), _>("none yet")
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "not within 30ms: an answer; the last check did not answer")]
async fn a_hanging_check_does_not_hang_the_test() {
    eventually(Duration::from_millis(30), "an answer", async || {
        std::future::pending::<bool>().await
    })
    .await;
}
