//! How long nobody leads: after a resignation, against the least that the bare client needs, interleaved in one run and
//! shown as ratios; and after a crash, against the granted ttl.

mod crash;
mod field;
mod floor;

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Recipe};
use coord_election_tests::Store;
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions, ZkEnsemble, ZkOptions};
use coord_mem::MemStore;
use coord_zk::{ZkConfig, ZkCoordinator};
use field::Field;
use floor::{Bare, BareEtcd, BareMemory, BareZooKeeper, Floor, Then};
use futures::future::{BoxFuture, join_all};
use zookeeper_client::Client as ZooKeeper;

const ROUNDS: usize = 300;
/// Rounds that do not count.
const WARM_UP: usize = 10;
/// After each change: those who lost or joined again have settled.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);
/// A standby that has joined only now.
const JUST_JOINED: Duration = Duration::from_millis(20);
/// Clients of a thousand candidates.
const SHARED_BY_MANY: usize = 16;

type Open = Box<dyn Fn() -> Arc<dyn Coordinator>>;
type OpenBare = Box<dyn Fn() -> BoxFuture<'static, Arc<dyn Bare>>>;

/// One driver, and the bare client of its store.
struct Side {
    name: &'static str,
    open: Open,
    bare: OpenBare,
}

struct Row {
    what: String,
    times: Vec<Duration>,
    calls: Vec<usize>,
    target: &'static str,
    /// The bare clients that it is compared with: as many as candidates.
    floor: usize,
}

impl Row {
    fn new(what: impl Into<String>, target: &'static str, floor: usize) -> Row {
        Row {
            what: what.into(),
            times: vec![],
            calls: vec![],
            target,
            floor,
        }
    }
}

fn quantile(times: &[Duration], of: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = ((times.len() - 1) as f64 * of).round() as usize;
    times[at].as_secs_f64() * 1e6
}

fn print(name: &str, floors: &[(Floor, Vec<Duration>)], rows: &[Row]) {
    println!("\n| {name} | p50 | p90 | of the floor | target | calls |\n| --- | ---: | ---: | ---: | --- | ---: |");
    for (floor, times) in floors {
        let (p50, p90) = (quantile(times, 0.5), quantile(times, 0.9));
        println!(
            "| floor, {} bare clients | {p50:.0} µs | {p90:.0} µs | 1 | | |",
            floor.size()
        );
    }
    for row in rows {
        let (p50, p90) = (quantile(&row.times, 0.5), quantile(&row.times, 0.9));
        let floor = floors.iter().find(|(floor, _)| floor.size() == row.floor);
        let bare = quantile(&floor.expect("a floor of this size").1, 0.5);
        let mut calls = row.calls.clone();
        calls.sort_unstable();
        let calls = calls[calls.len() / 2];
        let (what, target) = (&row.what, row.target);
        println!(
            "| {what} | {p50:.0} µs | {p90:.0} µs | {:.2} | {target} | {calls} |",
            p50 / bare
        );
    }
}

impl Side {
    async fn field(&self, key: &str, recipe: Recipe, count: usize, clients: usize) -> Field {
        let clients = (0..clients).map(|_| (self.open)()).collect();
        Field::open(clients, key, recipe, count).await
    }

    /// Fields of these sizes, and the floor, one after the other in each round.
    async fn measure(&self, recipe: Recipe, sizes: &[usize], then: Then, target: &'static str, rounds: usize) {
        let (mut fields, mut floors) = (vec![], vec![]);
        for &size in sizes {
            let key = format!("/bench/{recipe:?}-{size}");
            let field = self
                .field(&key, recipe, size, if size > 64 { SHARED_BY_MANY } else { size })
                .await;
            // More bare clients than that are no colder.
            let bare = size.min(64);
            let clients = join_all((0..bare).map(|_| (self.bare)())).await;
            floors.push((Floor::open(clients, then).await, vec![]));
            fields.push((field, Row::new(format!("{size} candidates"), target, bare)));
        }
        let mut late = None;
        if recipe == Recipe::Sequence && sizes.contains(&2) {
            let mut field = self.field("/bench/late", recipe, 2, 2).await;
            let was = field.hand_over().await.was;
            late = Some((field, was, Row::new("standby joined 20 ms before", target, 2)));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        for round in 0..rounds + WARM_UP {
            let counts = round >= WARM_UP;
            for (floor, times) in &mut floors {
                let took = floor.once().await;
                tokio::time::sleep(SETTLE).await;
                if counts {
                    times.push(took);
                }
            }
            for (field, row) in &mut fields {
                let change = field.hand_over().await;
                field.join(change.was);
                // Joining is not what is measured, here or in the next field.
                tokio::time::sleep(SETTLE).await;
                if counts {
                    row.times.push(change.took);
                    row.calls.push(change.calls);
                }
            }
            if let Some((field, was, row)) = &mut late {
                field.join(*was);
                tokio::time::sleep(JUST_JOINED).await;
                let change = field.hand_over().await;
                *was = change.was;
                if counts {
                    row.times.push(change.took);
                    row.calls.push(change.calls);
                }
            }
            tokio::time::sleep(SETTLE).await;
        }
        let mut rows: Vec<_> = fields.into_iter().map(|(_, row)| row).collect();
        rows.extend(late.map(|(_, _, row)| row));
        print(&format!("{}, {recipe:?}", self.name), &floors, &rows);
    }

    async fn all(self) {
        let few = [2, 16, 64];
        self.measure(Recipe::Sequence, &few, Then::Get, "≤ 1.15", ROUNDS).await;
        self.measure(Recipe::Cas, &few, Then::Create, "", ROUNDS / 2).await;
        self.measure(Recipe::Sequence, &[1000], Then::Get, "", ROUNDS / 3).await;
    }
}

async fn memory() {
    let store = MemStore::new(&Env::system());
    let open = {
        let store = store.clone();
        move || -> Arc<dyn Coordinator> { store.client() }
    };
    let bare = {
        let open = open.clone();
        move || -> BoxFuture<'static, Arc<dyn Bare>> {
            let bare: Arc<dyn Bare> = Arc::new(BareMemory(open()));
            Box::pin(std::future::ready(bare))
        }
    };
    let side = Side {
        name: "memory",
        open: Box::new(open),
        bare: Box::new(bare),
    };
    side.all().await;
    crash::print("memory", crash::in_memory().await);
}

async fn etcd() {
    let cluster = EtcdCluster::start(EtcdOptions {
        heartbeat: Duration::from_millis(100),
        election_timeout: Duration::from_secs(1),
        ..EtcdOptions::default()
    })
    .await;
    let endpoints = cluster.endpoints();
    let bare = cluster.endpoints();
    let side = Side {
        name: "etcd",
        open: Box::new(move || {
            EtcdCoordinator::open(EtcdConfig::new(endpoints.clone()), Env::system()).expect("it opens")
        }),
        bare: Box::new(move || {
            let endpoints = bare.clone();
            Box::pin(async move {
                let mut client = etcd_client::Client::connect(endpoints, None).await.expect("a client");
                let lease = client.lease_grant(3600, None).await.expect("a lease").id();
                let bare: Arc<dyn Bare> = Arc::new(BareEtcd { client, lease });
                bare
            })
        }),
    };
    side.all().await;
    // Leases of whole seconds need servers that elect faster.
    let cluster = EtcdCluster::start(EtcdOptions::default()).await;
    let address = cluster.node(0).client_addr();
    crash::print("etcd", crash::of_processes(Store::Etcd, address).await);
}

async fn zookeeper() {
    let ensemble = ZkEnsemble::start(ZkOptions {
        tick: Duration::from_secs(2),
        ..ZkOptions::default()
    })
    .await;
    let servers = ensemble.connect_string();
    let bare = servers.clone();
    let side = Side {
        name: "zookeeper",
        open: Box::new(move || ZkCoordinator::open(ZkConfig::new(servers.clone()), Env::system()).expect("it opens")),
        bare: Box::new(move || {
            let servers = bare.clone();
            Box::pin(async move {
                let bare: Arc<dyn Bare> =
                    Arc::new(BareZooKeeper(ZooKeeper::connect(&servers).await.expect("a client")));
                bare
            })
        }),
    };
    side.all().await;
    let ensemble = ZkEnsemble::start(ZkOptions::default()).await;
    let address = ensemble.node(0).client_addr();
    crash::print("zookeeper", crash::of_processes(Store::ZooKeeper, address).await);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo bench -p coord-election-tests -- etcd` measures one driver.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name);
    if wants("memory") {
        memory().await;
    }
    if wants("etcd") {
        etcd().await;
    }
    if wants("zookeeper") {
        zookeeper().await;
    }
}
