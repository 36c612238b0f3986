//! The driver against the bare client library sending the same requests: interleaved in one run, shown as ratios.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coord_api::{Coordinator, CoordinatorExt, Entry, Env, Key, Target};
use coord_harness::{ZkEnsemble, ZkOptions};
use coord_zk::{ZkConfig, ZkCoordinator};
use futures::future::join_all;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, MultiWriteResult};

const ROUNDS: usize = 1500;
const CALLERS: usize = 64;
const PER_CALLER: usize = 60;
const REPEATS: usize = 15;
const WATCHES: usize = 1000;
const VALUE: &[u8] = &[b'v'; 100];
/// As many as the driver has, beside its own.
const GUARDS: usize = 1024;

fn node() -> CreateOptions<'static> {
    CreateMode::Persistent.with_acls(Acls::anyone_all())
}

fn key(text: String) -> Key {
    Key::new(text).expect("a valid key")
}

fn guard(number: usize) -> String {
    format!("/.coord/guards/bare{}", number % GUARDS)
}

async fn bare_create(client: &Client, path: &str, number: usize) -> i32 {
    let mut writer = client.new_multi_writer();
    writer.add_create(path, VALUE, &node()).unwrap();
    writer.add_set_data(&guard(number), b"", None).unwrap();
    match writer.commit().await.unwrap().pop() {
        Some(MultiWriteResult::SetData { stat }) => stat.version,
        other => panic!("{other:?}"),
    }
}

async fn bare_update(client: &Client, path: &str, number: usize, guarded: i32) {
    let mut writer = client.new_multi_writer();
    writer.add_check_version(&guard(number), guarded).unwrap();
    writer.add_set_data(path, VALUE, Some(0)).unwrap();
    writer.commit().await.unwrap();
}

async fn timed<T>(into: &mut Vec<Duration>, future: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let output = future.await;
    into.push(start.elapsed());
    output
}

fn p50(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn row(what: &str, ours: f64, bare: f64, unit: &str, target: &str) {
    println!(
        "| {what} | {ours:.0} {unit} | {bare:.0} {unit} | {:.2} | {target} |",
        ours / bare
    );
}

async fn latencies(coordinator: &dyn Coordinator, client: &Client) {
    let mut times: [Vec<Duration>; 10] = Default::default();
    let [
        get,
        bare_get,
        latest,
        create,
        bare_guarded,
        bare_plain,
        update,
        bare_guarded_update,
        bare_plain_update,
        renew,
    ] = &mut times;
    let grant = coordinator.grant(Duration::from_secs(30)).await.unwrap();
    for round in 0..ROUNDS {
        let (ours, guarded, plain) = (
            key(format!("/bench/o{round}")),
            format!("/bench/b{round}"),
            format!("/bench/p{round}"),
        );
        let (mut entry, mut guarded_at) = (None, 0);
        // Who comes first may pay for what came before: take turns.
        let turns = [round % 2 == 0, round % 2 != 0];
        for our_turn in turns {
            if our_turn {
                entry = Some(
                    timed(create, coordinator.create_persistent(&ours, VALUE))
                        .await
                        .unwrap(),
                );
            } else {
                guarded_at = timed(bare_guarded, bare_create(client, &guarded, round)).await;
            }
        }
        timed(bare_plain, client.create(&plain, VALUE, &node())).await.unwrap();
        let expected = entry.expect("it was made").version;
        for our_turn in turns {
            if our_turn {
                timed(update, coordinator.update(&ours, VALUE.into(), expected.into()))
                    .await
                    .unwrap();
            } else {
                timed(bare_guarded_update, bare_update(client, &guarded, round, guarded_at)).await;
            }
        }
        timed(bare_plain_update, client.set_data(&plain, VALUE, Some(0)))
            .await
            .unwrap();
        timed(latest, coordinator.get_latest(&ours)).await.unwrap();
        timed(renew, coordinator.renew(grant.lease)).await.unwrap();
    }
    // By themselves: the first read after a write is slower than the next one, and half and half has no middle.
    for round in 0..2 * ROUNDS {
        let (ours, plain) = (
            key(format!("/bench/o{}", round % ROUNDS)),
            format!("/bench/p{}", round % ROUNDS),
        );
        for our_turn in [round % 2 == 0, round % 2 != 0] {
            if our_turn {
                timed(get, coordinator.get(&ours)).await.unwrap();
            } else {
                timed(bare_get, client.get_data(&plain)).await.unwrap();
            }
        }
    }
    let [
        get,
        bare_get,
        latest,
        create,
        bare_guarded,
        bare_plain,
        update,
        bare_guarded_update,
        bare_plain_update,
        renew,
    ] = times.each_mut().map(|times| p50(times));
    println!("\n| p50, one caller | driver | bare | ratio | target |\n| --- | --- | --- | --- | --- |");
    row("get", get, bare_get, "µs", "≤ 1.10");
    row("create, same requests", create, bare_guarded, "µs", "≤ 1.10");
    row("update, same requests", update, bare_guarded_update, "µs", "≤ 1.10");
    row("guarded create against a plain one", bare_guarded, bare_plain, "µs", "");
    row(
        "guarded update against a plain one",
        bare_guarded_update,
        bare_plain_update,
        "µs",
        "",
    );
    row("get_latest against a plain get", latest, bare_get, "µs", "");
    row("renew against a plain update", renew, bare_plain_update, "µs", "");
}

/// Operations per second with many callers.
async fn rate<F, Fut>(call: F) -> f64
where
    F: Fn(usize, usize) -> Fut + Copy,
    Fut: Future<Output = ()>,
{
    let start = Instant::now();
    join_all((0..CALLERS).map(|caller| async move {
        for n in 0..PER_CALLER {
            call(caller, n).await;
        }
    }))
    .await;
    (CALLERS * PER_CALLER) as f64 / start.elapsed().as_secs_f64()
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Medians over the repeats; the ratio is the median of each repeat's own, so that what else the machine does drops out.
fn rates_row(what: &str, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let bare = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!("| {what} | {ours:.0} /s | {bare:.0} /s | {ratio:.2} | ≥ 0.90 |");
}

async fn throughput(coordinator: &dyn Coordinator, client: &Client) {
    let (mut creates, mut updates, mut gets) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 0..REPEATS {
        let entries: &Mutex<Vec<Option<Entry>>> = &Mutex::new(vec![None; CALLERS * PER_CALLER]);
        let number = |caller, n| caller * PER_CALLER + n;
        let ours = move |caller, n| key(format!("/bench/to{repeat}-{caller}-{n}"));
        let bare = move |caller, n| format!("/bench/tb{repeat}-{caller}-{n}");
        let turns = [repeat % 2 == 0, repeat % 2 != 0];
        let mut pair = (0.0, 0.0);
        for our_turn in turns {
            if our_turn {
                let created = rate(|caller, n| async move {
                    let entry = coordinator.create_persistent(&ours(caller, n), VALUE).await.unwrap();
                    entries.lock().unwrap()[number(caller, n)] = Some(entry);
                });
                pair.0 = created.await;
            } else {
                let created = rate(|caller, n| async move {
                    bare_create(client, &bare(caller, n), number(caller, n)).await;
                });
                pair.1 = created.await;
            }
        }
        creates.push(pair);
        let mut guards = Vec::new();
        for n in 0..GUARDS {
            guards.push(client.check_stat(&guard(n)).await.unwrap().unwrap().version);
        }
        let guards = &guards;
        for our_turn in turns {
            if our_turn {
                let updated = rate(|caller, n| async move {
                    let entry = entries.lock().unwrap()[number(caller, n)].clone().unwrap();
                    let expected = entry.version.into();
                    coordinator.update(&entry.key, VALUE.into(), expected).await.unwrap();
                });
                pair.0 = updated.await;
            } else {
                let updated = rate(|caller, n| async move {
                    let number = number(caller, n);
                    bare_update(client, &bare(caller, n), number, guards[number % GUARDS]).await;
                });
                pair.1 = updated.await;
            }
        }
        updates.push(pair);
        for our_turn in turns {
            if our_turn {
                let read = rate(|caller, n| async move { drop(coordinator.get(&ours(caller, n)).await.unwrap()) });
                pair.0 = read.await;
            } else {
                let read = rate(|caller, n| async move { drop(client.get_data(&bare(caller, n)).await.unwrap()) });
                pair.1 = read.await;
            }
        }
        gets.push(pair);
    }
    println!("\n| {CALLERS} callers | driver | bare | ratio | target |\n| --- | --- | --- | --- | --- |");
    rates_row("get", &gets);
    rates_row("create, same requests", &creates);
    rates_row("update, same requests", &updates);
}

async fn watches(coordinator: &dyn Coordinator, client: &Client) {
    let name = |n: usize| format!("/bench/w{n}");
    for n in 0..WATCHES {
        coordinator.create_persistent(&key(name(n)), VALUE).await.unwrap();
    }
    let start = Instant::now();
    let bare = join_all((0..WATCHES).map(|n| {
        let name = name(n);
        async move { client.get_and_watch_data(&name).await.unwrap().2 }
    }))
    .await;
    let bare_set = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let writes = join_all(
        (0..WATCHES)
            .map(|n| client.set_data(&name(n), VALUE, None))
            .collect::<Vec<_>>(),
    );
    futures::join!(writes, join_all(bare.into_iter().map(|watcher| watcher.changed())));
    let bare_told = start.elapsed().as_secs_f64() * 1e3;

    let start = Instant::now();
    let mut ours = Vec::new();
    for n in 0..WATCHES {
        ours.push(coordinator.watch(&Target::Key(key(name(n)))).await.unwrap());
    }
    join_all(ours.iter_mut().map(|watch| watch.next())).await;
    let set = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let writes = join_all(
        (0..WATCHES)
            .map(|n| client.set_data(&name(n), VALUE, None))
            .collect::<Vec<_>>(),
    );
    futures::join!(writes, join_all(ours.iter_mut().map(|watch| watch.next())));
    let told = start.elapsed().as_secs_f64() * 1e3;
    println!("\n| {WATCHES} watches | driver | bare one-shots | ratio | |\n| --- | --- | --- | --- | --- |");
    row("all registered, state delivered", set, bare_set, "ms", "");
    row("a change of each written and told", told, bare_told, "ms", "");
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let ensemble = ZkEnsemble::start(ZkOptions {
        tick: Duration::from_secs(2),
        ..ZkOptions::default()
    })
    .await;
    let coordinator: Arc<dyn Coordinator> =
        ZkCoordinator::open(ZkConfig::new(ensemble.connect_string()), Env::system()).unwrap();
    let client = Client::connect(&ensemble.connect_string()).await.unwrap();
    coordinator
        .create_persistent(&key("/bench/warm".into()), VALUE)
        .await
        .unwrap();
    for n in 0..GUARDS {
        client.create(&guard(n), b"", &node()).await.unwrap();
    }
    // The guards that the driver makes on first use are not what is measured.
    for n in 0..6000 {
        let name = key(format!("/bench/warm{n}"));
        let made = coordinator.create_persistent(&name, "").await.unwrap();
        coordinator.delete(&name, made.version.into()).await.unwrap();
    }
    latencies(&*coordinator, &client).await;
    throughput(&*coordinator, &client).await;
    watches(&*coordinator, &client).await;
    coordinator.close().await.unwrap();
}
