use std::time::Duration;

use coord_api::{Key, Recipe, Task};
use coord_election_tests::Store;
use coord_recipes_tests::{check, intervals};
use rustix::process::Signal;

use crate::cast::{Cast, TTL};
use crate::control::Control;
use crate::theatre::Theatre;

/// How late a process may notice something on a machine that does other things, too.
const LATE: Duration = Duration::from_millis(500);

async fn play(store: Store, recipe: Recipe) {
    let theatre = Theatre::open(store).await;
    let client = store.open(&theatre.address().to_string()).unwrap();
    let mut cast = Cast::new(&theatre, store, recipe, 3).await;

    // Killed, twice: the next one leads as soon as the lease has ended.
    for _ in 0..2 {
        let control = Control::ready(&theatre, store, &client).await;
        let leader = cast.leader(cast.now()).await;
        let killed = cast.now();
        let control = control.begin();
        cast.replace(leader).await;
        in_time(&cast, "killed", killed, control).await;
    }

    // Stopped: shorter than its lease, longer, much longer.
    for lease_tenths in [5, 11] {
        let leader = cast.leader(cast.now()).await;
        stand_still(&cast, leader, lease_tenths).await;
        cast.leader(cast.now()).await;
    }
    let control = Control::ready(&theatre, store, &client).await;
    let leader = cast.leader(cast.now()).await;
    let stopped = cast.now();
    let control = control.begin();
    stand_still(&cast, leader, 30).await;
    in_time(&cast, "stopped", stopped, control).await;
    cast.leader(cast.now()).await;

    // Cut off: nothing comes through any more, or the connections break.
    for black_hole in [true, false] {
        let control = Control::ready(&theatre, store, &client).await;
        let leader = cast.leader(cast.now()).await;
        let way = &cast.actors[leader].way;
        let since = cast.now();
        let control = control.begin();
        if black_hole {
            way.black_hole();
        } else {
            way.cut();
        }
        in_time(&cast, "cut off", since, control).await;
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
    let key = Key::new("/election").unwrap();
    let left = match recipe {
        Recipe::Sequence => client.children(&key).await.unwrap(),
        Recipe::Cas => client.get_latest(&key).await.unwrap().into_iter().collect(),
    };
    assert_eq!(left, []);
    client.close().await.unwrap();
}

async fn stand_still(cast: &Cast, who: usize, lease_tenths: u32) {
    cast.signal(who, Signal::STOP);
    cast.sleep(TTL * lease_tenths / 10).await;
    cast.signal(who, Signal::CONT);
}

/// The next one leads as soon as the lease of the one before has ended: within the granted ttl and the driver's slack,
/// and however much later than that the store has ended a lease of the same age that no recipe has to do with.
async fn in_time(cast: &Cast, what: &str, since: Duration, control: Task<Duration>) {
    let (elected, store_late) = tokio::join!(cast.elected(since), control.join());
    let store_late = store_late.expect("the control goes on");
    let (took, (ttl, slack)) = (elected - since, cast.terms());
    let told = format!(
        "the leader was {what}, and the next one led {took:.2?} later; ttl {ttl:?}, slack {slack:?}, and a lease taken at \
         that moment and never renewed ended {store_late:.2?} later than that"
    );
    assert!(took <= ttl + slack + store_late + LATE, "{told}");
    eprintln!("{told}");
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
