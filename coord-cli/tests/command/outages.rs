//! A store that is down at the start, and one that goes away.

use crate::store::Store;
use crate::support::{Done, Running, command, finish};

/// For those that are run to their end while nobody answers.
async fn coord(store: &str, args: &[&str]) -> Done {
    let mut command = command(&[&["--store", store], args].concat());
    command.env("COORD_CALL_DEADLINE", "1s");
    finish(command).await
}

async fn play(store: Store) {
    let url = &store.url();
    store.node().kill();

    // One-shot commands say so, and what to do is in the exit code.
    let done = coord(url, &["get", "/a"]).await;
    assert_eq!(done.code, Some(69), "{done:?}");
    let done = coord(url, &["--json", "check"]).await;
    assert_eq!(done.code, Some(69), "{done:?}");
    assert_eq!(done.rows()[0]["problems"][0]["fatal"], true, "{done:?}");

    // The others wait, tell it, and go on by themselves.
    let mut waiting = [
        Running::start(url, &["elect", "boss", "--ttl", "2s"]),
        Running::start(url, &["observe", "boss"]),
        Running::start(url, &["register", "web", "1", "h:1", "--ttl", "2s"]),
        Running::start(url, &["services", "web", "--watch"]),
        Running::start(url, &["watch", "/services", "--children"]),
    ];
    for one in &waiting {
        one.says("waiting for the store").await;
    }
    let mut unheard = Running::unheard(url, &["elect", "unheard", "--ttl", "2s", "-v"]);
    // Nobody has to wait until the store is back in order to leave.
    let mut leaving = Running::start(url, &["elect", "boss"]);
    leaving.says("waiting for the store").await;
    leaving.terminate().await;

    // Who does not want to wait for ever says so.
    let mut impatient = command(&["--store", url, "elect", "boss"]);
    impatient
        .env("COORD_SESSION_BACKOFF_LIMIT", "1s")
        .env("COORD_CALL_DEADLINE", "1s");
    let impatient = finish(impatient).await;
    assert_eq!(impatient.code, Some(69), "{impatient:?}");
    assert!(impatient.stderr.contains("session.backoff.limit"), "{impatient:?}");

    store.node().restart();
    let [elect, observe, register, services, watch] = &waiting;
    elect.event(0, "elected").await;
    observe.row(0, "the leader", |row| row["name"].is_string()).await;
    register.event(0, "registered").await;
    services.event(0, "added").await;
    watch
        .row(0, "the service", |row| row.to_string().contains("/services/web"))
        .await;
    for one in &waiting {
        one.says("answers").await;
    }
    unheard.event(0, "elected").await;
    unheard.terminate().await;
    for one in &mut waiting {
        one.terminate().await;
    }
}

#[tokio::test]
async fn etcd_is_down_at_the_start_and_comes_up() {
    play(Store::etcd().await).await;
}

#[tokio::test]
async fn zookeeper_is_down_at_the_start_and_comes_up() {
    play(Store::zookeeper().await).await;
}
