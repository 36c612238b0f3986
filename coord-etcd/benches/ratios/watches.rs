//! Ten thousand watches on one connection.

use std::time::{Duration, Instant};

use coord_api::{Coordinator, CoordinatorExt, Expect, Target, Watch, WatchEvent};
use coord_harness::EtcdCluster;
use etcd_client::{Client, WatchOptions};
use futures::StreamExt;
use futures::future::join_all;

use crate::{VALUE, key, p50, row};

const WATCHES: usize = 10_000;
const EVENTS: usize = 500;
const AT_ONCE: usize = 64;

fn name(n: usize) -> String {
    format!("/watched/w{n}")
}

/// Kilobytes of this process that are in memory.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or(0.0)
}

async fn next(watch: &mut Watch) -> WatchEvent {
    let event = tokio::time::timeout(Duration::from_secs(30), watch.next()).await;
    event
        .expect("an event in time")
        .expect("the watch goes on")
        .expect("no error")
}

/// From the beginning of a write to the event of it, p50.
async fn put_to_event(coordinator: &dyn Coordinator, watches: &mut [Watch]) -> f64 {
    let mut times = Vec::new();
    for event in 0..EVENTS {
        let n = event * 7919 % watches.len();
        let start = Instant::now();
        let write = coordinator.update(&key(name(n)), VALUE.into(), Expect::Any).await;
        write.expect("a write");
        let told = next(&mut watches[n]).await;
        assert!(matches!(told, WatchEvent::Put(_)), "{told:?}");
        times.push(start.elapsed());
    }
    p50(&mut times)
}

/// The same number of watches on one stream of the bare client, without any state.
async fn bare(client: &Client) -> f64 {
    let start = Instant::now();
    let stream = client.watch_client().watch(name(0), None).await.expect("a stream");
    let (mut sender, mut answers) = stream.split();
    let ask = async {
        for n in 1..WATCHES {
            let options = WatchOptions::new().with_watch_id(i64::try_from(n).unwrap_or(0));
            sender.watch(name(n), Some(options)).await.expect("a watch");
        }
    };
    let hear = async {
        let mut created = 0;
        while created < WATCHES {
            let message = answers.message().await.expect("an answer").expect("the stream goes on");
            created += usize::from(message.created());
        }
    };
    tokio::join!(ask, hear);
    start.elapsed().as_secs_f64() * 1e3
}

pub(crate) async fn measure(etcd: &EtcdCluster, coordinator: &dyn Coordinator, client: Client) {
    let made = futures::stream::iter(0..WATCHES)
        .map(|n| async move { coordinator.create_persistent(&key(name(n)), VALUE).await.map(drop) })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    assert!(made.iter().all(Result::is_ok));

    let target = Target::Key(key(name(0)));
    let mut single = vec![coordinator.watch(&target).await.unwrap()];
    next(&mut single[0]).await;
    let alone = put_to_event(coordinator, &mut single).await;
    drop(single);

    let bare_set = bare(&client).await;
    let before = resident();
    let start = Instant::now();
    let mut watches: Vec<Watch> = futures::stream::iter(0..WATCHES)
        .map(|n| async move { coordinator.watch(&Target::Key(key(name(n)))).await.unwrap() })
        .buffered(WATCHES)
        .collect()
        .await;
    let states = join_all(watches.iter_mut().map(next)).await;
    let set = start.elapsed().as_secs_f64() * 1e3;
    let each = (resident() - before) / WATCHES as f64;
    assert!(
        states
            .iter()
            .all(|state| matches!(state, WatchEvent::State(entries) if entries.len() == 1))
    );
    let many = put_to_event(coordinator, &mut watches).await;

    // A change of each, then the end of each: the last state and every deletion arrive.
    let start = Instant::now();
    let write = futures::stream::iter(0..WATCHES)
        .map(|n| async move {
            let entry = coordinator.update(&key(name(n)), "last".into(), Expect::Any).await?;
            coordinator.delete(&entry.key, entry.version.into()).await
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>();
    let read = join_all(watches.iter_mut().map(|watch| async {
        loop {
            if matches!(next(watch).await, WatchEvent::Delete { .. }) {
                return;
            }
        }
    }));
    let (written, _) = tokio::join!(write, read);
    assert!(written.iter().all(Result::is_ok));
    let told = start.elapsed().as_secs_f64() * 1e3;

    let start = Instant::now();
    drop(watches);
    let cancelled = async {
        while etcd
            .metric(0, "etcd_debugging_mvcc_watcher_total")
            .await
            .is_none_or(|left| left > 10.0)
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), cancelled)
        .await
        .expect("the server forgets dropped watches");
    let dropped = start.elapsed().as_secs_f64() * 1e3;

    println!("\n| {WATCHES} watches on one connection | driver | against | ratio | |\n| --- | --- | --- | --- | --- |");
    row(
        "set up, states read (against bare watches without states)",
        set,
        bare_set,
        "ms",
        "",
    );
    row("put to event, p50 (against a single watch)", many, alone, "µs", "");
    println!("| memory of each at the client | {each:.1} kB | | | |");
    println!("| a change and the deletion of each written and told | {told:.0} ms | | | |");
    println!("| all dropped, and forgotten by the server | {dropped:.0} ms | | | |");
}
