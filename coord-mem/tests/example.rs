//! One's own logic on the in-memory driver, in virtual time: an example that goes on compiling and holding.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, Key, Target, WatchEvent};
use coord_mem::MemStore;

// Two clients, paused time, a lease ended on purpose: who may act, and when does the other one learn it?
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
