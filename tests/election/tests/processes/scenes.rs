use std::time::Duration;

use coord_api::{Key, Recipe};
use coord_election_tests::Store;
use coord_recipes_tests::{check, intervals};
use rustix::process::Signal;

use crate::cast::{Cast, TTL};
use crate::theatre::Theatre;

/// How late a process may notice something on a machine that does other things, too.
const LATE: Duration = Duration::from_millis(500);

async fn play(store: Store, recipe: Recipe) {
    let theatre = Theatre::open(store).await;
    let mut cast = Cast::new(&theatre, store, recipe, 3).await;

    // Killed, twice: the next one leads as soon as the lease has ended.
    for _ in 0..2 {
        let leader = cast.leader(cast.now()).await;
        let killed = cast.now();
        cast.replace(leader).await;
        let took = cast.elected(killed).await - killed;
        let (ttl, slack) = cast.terms();
        assert!(
            took <= ttl + slack + LATE,
            "{took:?} with a ttl of {ttl:?} and a slack of {slack:?}"
        );
        eprintln!("{store:?} {recipe:?}: taken over {took:?} after a crash, ttl {ttl:?}, slack {slack:?}");
    }

    // Stopped: shorter than its lease, longer, much longer.
    for lease_tenths in [5, 11, 30] {
        let leader = cast.leader(cast.now()).await;
        let stopped = cast.now();
        cast.signal(leader, Signal::STOP);
        cast.sleep(TTL * lease_tenths / 10).await;
        cast.signal(leader, Signal::CONT);
        if lease_tenths == 30 {
            let took = cast.elected(stopped).await - stopped;
            let (ttl, slack) = cast.terms();
            assert!(took <= ttl + slack + LATE, "{took:?} although the leader stood still");
        }
        cast.leader(cast.now()).await;
    }

    // Cut off: nothing comes through any more, or the connections break.
    for black_hole in [true, false] {
        let leader = cast.leader(cast.now()).await;
        let way = &cast.actors[leader].way;
        let since = cast.now();
        if black_hole {
            way.black_hole();
        } else {
            way.cut();
        }
        let took = cast.elected(since).await - since;
        let (ttl, slack) = cast.terms();
        assert!(
            took <= ttl + slack + LATE,
            "{took:?} with a ttl of {ttl:?} and a slack of {slack:?}"
        );
        cast.actors[leader].way.pass();
        cast.leader(cast.now()).await;
    }

    let lines = cast.close().await;
    let wrong = check(&lines);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let led = intervals(&lines).len();
    assert!(
        led >= 6,
        "killed, stopped and cut off: at least so many leaders, not {led}"
    );

    // Everybody has closed: nothing may wait for the end of a lease.
    let client = store.open(&theatre.address().to_string()).unwrap();
    let key = Key::new("/election").unwrap();
    let left = match recipe {
        Recipe::Sequence => client.children(&key).await.unwrap(),
        Recipe::Cas => client.get_latest(&key).await.unwrap().into_iter().collect(),
    };
    assert_eq!(left, []);
    client.close().await.unwrap();
}

#[tokio::test]
async fn etcd_sequence() {
    play(Store::Etcd, Recipe::Sequence).await;
}

#[tokio::test]
async fn etcd_cas() {
    play(Store::Etcd, Recipe::Cas).await;
}

#[tokio::test]
async fn zookeeper_sequence() {
    play(Store::ZooKeeper, Recipe::Sequence).await;
}

#[tokio::test]
async fn zookeeper_cas() {
    play(Store::ZooKeeper, Recipe::Cas).await;
}
