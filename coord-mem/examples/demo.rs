//! A story in virtual time: two clients, a lease, an ephemeral entry, a watch, and a lease that is ended on purpose.

use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, Instant, Key, Result, Target, WatchEvent};
use coord_mem::{Fault, GiveUp, MemStore};

const TTL: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    tokio::time::pause();
    let env = Env::simulated(1);
    let start = env.now();
    let say = |who: &str, what: String| println!("{} {who:>5} | {what}", clock(env.now(), start));

    let store = MemStore::new(&env);
    let (alice, bob) = (store.client(), store.client());
    let leader = Key::root().child("leader").unwrap_or_else(|_| Key::root());

    let grant = alice.grant(TTL).await?;
    let valid = clock(grant.valid_until, start);
    say(
        "alice",
        format!("has lease {}, which surely lives until {valid}", grant.lease),
    );
    let entry = alice.create_ephemeral(&leader, "alice", grant.lease).await?;
    say("alice", format!("holds {leader} with token {}", entry.created));

    if let Err(refused) = bob.create_persistent(&leader, "bob").await {
        say("bob", format!("is refused: {refused}"));
    }
    let mut watch = bob.watch(&Target::Key(leader.clone())).await?;
    say("bob", told(watch.next().await));

    for _ in 0..3 {
        env.sleep(TTL / 3).await;
        let renewed = alice.renew(grant.lease).await?;
        say(
            "alice",
            format!("renews: valid until {}", clock(renewed.valid_until, start)),
        );
    }
    say("store", "ends the lease of alice, on purpose".to_owned());
    alice.faults().end_lease(grant.lease);
    say("bob", told(watch.next().await));
    if let Err(lost) = alice.renew(grant.lease).await {
        say("alice", format!("learns of it: {lost}"));
    }

    let grant = bob.grant(TTL).await?;
    say("store", "takes the create of bob, but its answer gets lost".to_owned());
    bob.faults().next_call(Fault::LoseAnswer(GiveUp::AtDeadline));
    let create = coord_api::Create::new(
        bob.env(),
        leader.clone(),
        "bob",
        coord_api::CreateMode::Ephemeral(grant.lease),
    );
    if let Err(unknown) = bob.create(&create).await {
        say("bob", format!("cannot know: {unknown}"));
    }
    let entry = bob.create(&create).await?;
    say(
        "bob",
        format!("asks again and finds his own entry, with token {}", entry.created),
    );
    say("bob", told(watch.next().await));

    say("bob", "is cut off, and nobody renews his lease".to_owned());
    bob.faults().cut();
    let mut seen_by_alice = alice.watch(&Target::Key(leader)).await?;
    say("alice", told(seen_by_alice.next().await));
    say("alice", told(seen_by_alice.next().await));
    Ok(())
}

fn clock(at: Instant, start: Instant) -> String {
    format!("{:6.2} s", (at - start).as_secs_f64())
}

fn told(event: Option<Result<WatchEvent>>) -> String {
    match event {
        Some(Ok(WatchEvent::State(entries) | WatchEvent::Resync(entries))) => {
            let names: Vec<_> = entries
                .iter()
                .map(|entry| String::from_utf8_lossy(&entry.value))
                .collect();
            format!("watches, and sees as leader now: {names:?}")
        }
        Some(Ok(WatchEvent::Put(entry))) => {
            let name = String::from_utf8_lossy(&entry.value);
            format!("is told of a new leader: {name}, token {}", entry.created)
        }
        Some(Ok(WatchEvent::Delete { created, .. })) => format!("is told that the leader with token {created} is gone"),
        Some(Err(error)) => format!("is told that the watch is over: {error}"),
        None => "is told nothing more".to_owned(),
    }
}
