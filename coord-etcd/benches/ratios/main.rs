//! The driver against the bare client library sending the same requests: interleaved in one run, shown as ratios.

mod watches;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coord_api::{Coordinator, CoordinatorExt, Entry, Env, Key};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions};
use etcd_client::{Client, Compare, CompareOp, GetOptions, KvClient, PutOptions, Txn, TxnOp, TxnResponse};
use futures::future::join_all;

const ROUNDS: usize = 3000;
const CALLERS: usize = 64;
const PER_CALLER: usize = 60;
const REPEATS: usize = 15;
const VALUE: &[u8] = &[b'v'; 100];

fn key(text: String) -> Key {
    Key::new(text).expect("a valid key")
}

/// What the driver sends for a create below `/bench`.
async fn bare_create(client: &mut KvClient, name: &str, lease: i64) -> i64 {
    let record = format!("/.coord/n/bare-{name}");
    let look = |name: &str| TxnOp::get(name, None);
    let make_parent = Txn::new()
        .when([Compare::create_revision("/bench", CompareOp::Equal, 0)])
        .and_then([TxnOp::put("/bench", "", None)]);
    let txn = Txn::new()
        .when([
            Compare::create_revision(name, CompareOp::Equal, 0),
            Compare::create_revision(record.as_str(), CompareOp::Equal, 0),
            Compare::lease("/bench", CompareOp::Equal, 0),
        ])
        .and_then([
            TxnOp::put(name, VALUE, None),
            TxnOp::put(record.as_str(), "created", Some(PutOptions::new().with_lease(lease))),
            TxnOp::txn(make_parent),
        ])
        .or_else([look(name), look(&record), look("/bench")]);
    revision(&client.txn(txn).await.expect("a create"))
}

/// What the driver sends for a conditional update.
async fn bare_update(client: &mut KvClient, name: &str, version: i64) {
    let look = || TxnOp::get(name, Some(GetOptions::new().with_keys_only()));
    let put = TxnOp::put(name, VALUE, Some(PutOptions::new().with_ignore_lease()));
    let txn = Txn::new()
        .when([
            Compare::create_revision(name, CompareOp::Equal, version),
            Compare::mod_revision(name, CompareOp::Equal, version),
        ])
        .and_then([put, look()])
        .or_else([look()]);
    revision(&client.txn(txn).await.expect("an update"));
}

fn revision(answer: &TxnResponse) -> i64 {
    assert!(answer.succeeded());
    answer.header().expect("a header").revision()
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

async fn latencies(coordinator: &dyn Coordinator, client: &mut KvClient, lease: i64) {
    let mut times: [Vec<Duration>; 10] = Default::default();
    let [
        get,
        bare_get,
        latest,
        create,
        bare_made,
        plain_made,
        update,
        bare_updated,
        plain_put,
        renew,
    ] = &mut times;
    let grant = coordinator.grant(Duration::from_secs(60)).await.unwrap();
    for round in 0..ROUNDS {
        let (ours, bare, plain) = (
            key(format!("/bench/o{round}")),
            format!("/bench/b{round}"),
            format!("/bench/p{round}"),
        );
        let (mut entry, mut version) = (None, 0);
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
                version = timed(bare_made, bare_create(client, &bare, lease)).await;
            }
        }
        timed(plain_made, client.put(plain.as_str(), VALUE, None))
            .await
            .unwrap();
        let expected = entry.expect("it was made").version;
        for our_turn in turns {
            if our_turn {
                timed(update, coordinator.update(&ours, VALUE.into(), expected.into()))
                    .await
                    .unwrap();
            } else {
                timed(bare_updated, bare_update(client, &bare, version)).await;
            }
        }
        timed(plain_put, client.put(plain.as_str(), VALUE, None)).await.unwrap();
        for our_turn in turns {
            if our_turn {
                timed(get, coordinator.get(&ours)).await.unwrap();
            } else {
                timed(bare_get, client.get(bare.as_str(), None)).await.unwrap();
            }
        }
        if round % 10 == 0 {
            timed(latest, coordinator.get_latest(&ours)).await.unwrap();
            timed(renew, coordinator.renew(grant.lease)).await.unwrap();
        }
    }
    let [
        get,
        bare_get,
        latest,
        create,
        bare_made,
        plain_made,
        update,
        bare_updated,
        plain_put,
        renew,
    ] = times.each_mut().map(|times| p50(times));
    println!("\n| p50, one caller | driver | bare | ratio | target |\n| --- | --- | --- | --- | --- |");
    row("get", get, bare_get, "µs", "≤ 1.10");
    row("create, same requests", create, bare_made, "µs", "≤ 1.10");
    row("update, same requests", update, bare_updated, "µs", "≤ 1.10");
    row("create against a plain put", create, plain_made, "µs", "");
    row("update against a plain put", update, plain_put, "µs", "");
    row("get_latest against a plain get", latest, bare_get, "µs", "");
    row("renew with proof against a plain put", renew, plain_put, "µs", "");
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
fn rates_row(what: &str, ours: &[f64], bare: &[f64]) {
    let ratio = median(ours.iter().zip(bare).map(|(ours, bare)| ours / bare).collect());
    let (ours, bare) = (median(ours.to_vec()), median(bare.to_vec()));
    println!("| {what} | {ours:.0} /s | {bare:.0} /s | {ratio:.2} | ≥ 0.90 |");
}

async fn throughput(coordinator: &dyn Coordinator, client: &KvClient, lease: i64) {
    let mut rates: [Vec<f64>; 6] = Default::default();
    for repeat in 0..REPEATS {
        let entries: &Mutex<Vec<Option<Entry>>> = &Mutex::new(vec![None; CALLERS * PER_CALLER]);
        let versions: &Mutex<Vec<i64>> = &Mutex::new(vec![0; CALLERS * PER_CALLER]);
        let ours = move |caller, n| key(format!("/bench/to{repeat}-{caller}-{n}"));
        let bare = move |caller, n| format!("/bench/tb{repeat}-{caller}-{n}");
        for our_turn in [repeat % 2 == 0, repeat % 2 != 0] {
            let made = if our_turn {
                rate(|caller, n| async move {
                    let entry = coordinator.create_persistent(&ours(caller, n), VALUE).await.unwrap();
                    entries.lock().unwrap()[caller * PER_CALLER + n] = Some(entry);
                })
                .await
            } else {
                rate(|caller, n| async move {
                    let version = bare_create(&mut client.clone(), &bare(caller, n), lease).await;
                    versions.lock().unwrap()[caller * PER_CALLER + n] = version;
                })
                .await
            };
            rates[usize::from(!our_turn)].push(made);
        }
        for our_turn in [repeat % 2 == 0, repeat % 2 != 0] {
            let updated = if our_turn {
                rate(|caller, n| async move {
                    let entry = entries.lock().unwrap()[caller * PER_CALLER + n].clone().unwrap();
                    let version = entry.version.into();
                    coordinator.update(&entry.key, VALUE.into(), version).await.unwrap();
                })
                .await
            } else {
                rate(|caller, n| async move {
                    let version = versions.lock().unwrap()[caller * PER_CALLER + n];
                    bare_update(&mut client.clone(), &bare(caller, n), version).await;
                })
                .await
            };
            rates[2 + usize::from(!our_turn)].push(updated);
        }
        for our_turn in [repeat % 2 == 0, repeat % 2 != 0] {
            let read = if our_turn {
                rate(|caller, n| async move { drop(coordinator.get(&ours(caller, n)).await.unwrap()) }).await
            } else {
                rate(|caller, n| async move { drop(client.clone().get(bare(caller, n), None).await.unwrap()) }).await
            };
            rates[4 + usize::from(!our_turn)].push(read);
        }
    }
    let [create, bare_create, update, bare_update, get, bare_get] = rates;
    println!("\n| {CALLERS} callers | driver | bare | ratio | target |\n| --- | --- | --- | --- | --- |");
    rates_row("get", &get, &bare_get);
    rates_row("create, same requests", &create, &bare_create);
    rates_row("update, same requests", &update, &bare_update);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let etcd = EtcdCluster::start(EtcdOptions {
        heartbeat: Duration::from_millis(100),
        election_timeout: Duration::from_secs(1),
        ..EtcdOptions::default()
    })
    .await;
    let coordinator: Arc<EtcdCoordinator> =
        EtcdCoordinator::open(EtcdConfig::new(etcd.endpoints()), Env::system()).unwrap();
    let client = Client::connect(etcd.endpoints(), None).await.unwrap();
    let lease = client.lease_client().grant(600, None).await.unwrap().id();
    let mut kv = client.kv_client();
    for n in 0..500 {
        let warm = key(format!("/bench/warm{n}"));
        coordinator.create_persistent(&warm, VALUE).await.unwrap();
        bare_create(&mut kv, &format!("/bench/warm-bare{n}"), lease).await;
    }
    latencies(&*coordinator, &mut kv, lease).await;
    throughput(&*coordinator, &kv, lease).await;
    watches::measure(&etcd, &*coordinator, client).await;
    coordinator.close().await.unwrap();
}
