//! One's own logic on the in-memory driver, in virtual time: an example that goes on compiling and holding.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, Key, Target, WatchEvent};
use coord_mem::MemStore;

#[tokio::test(start_paused = true)]
async fn the_standby_takes_over_when_the_leader_goes_silent() -> coord_api::Result<()> {
    let store = MemStore::new(&Env::simulated(1));
    let (alice, bob) = (store.client(), store.client());
    let leader = Key::new("/jobs/nightly/leader").unwrap();

    let lease = alice.grant(Duration::from_secs(10)).await?.lease;
    let first = alice.create_ephemeral(&leader, "alice", lease).await?;
    let mut watch = bob.watch(&Target::Key(leader.clone())).await?;
    assert_eq!(watch.next().await.unwrap()?, WatchEvent::State(vec![first.clone()]));

    alice.faults().end_lease(lease); // as if alice had stopped renewing
    assert!(matches!(watch.next().await.unwrap()?, WatchEvent::Delete { .. }));
    let (_, second) = bob.create_with_ttl(&leader, "bob", Duration::from_secs(10)).await?;
    assert!(second.created > first.created, "a fencing token never goes back");
    Ok(())
}

#[test]
fn the_readme_shows_it() {
    let (_, code) = include_str!("example.rs")
        .split_once("#[tokio::test(")
        .expect("it is here");
    let (code, _) = code.split_once("\n}\n").expect("it ends");
    assert!(
        include_str!("../../README.md").contains(code),
        "README.md shows another example"
    );
}
