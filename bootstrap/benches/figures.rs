//! The figures in `docs/bootstrap.md`, from the simulation: `cargo bench -p coord-bootstrap`. Virtual time, so they follow
//! from the seeds alone and not from the machine.
#![allow(dead_code, reason = "the tests use the rest of these modules")]

#[path = "../tests/simulation/check.rs"]
mod check;
#[path = "../tests/simulation/network.rs"]
mod network;
#[path = "../tests/simulation/witness.rs"]
mod witness;
#[path = "../tests/simulation/world.rs"]
mod world;

use std::time::Duration;

use coord_api::Env;
use coord_cluster::sim::Network;

use world::{TTL, World, in_virtual_time};

const SEEDS: u64 = 20;
/// coord-cluster's default.
const GOSSIP_INTERVAL: Duration = Duration::from_secs(1);

struct Figures {
    /// From the first start until one converged cluster of all, with true seeds.
    whole: Duration,
    /// From one more start until the newcomer is let in.
    let_in: Duration,
    calls_at_start: f64,
    calls_to_join: f64,
    writes_per_second: f64,
}

async fn measure(seed: u64, nodes: usize) -> Figures {
    let mut world = World::new(Env::simulated(seed), Network::default());
    for _ in 0..nodes {
        world.add();
    }
    let start = world.env.now();
    while world.whole().await.is_err() {
        world.sleep(Duration::from_millis(50)).await;
    }
    let whole = world.env.now() - start;
    let calls = |world: &World| world.seen.lock().unwrap().calls as f64;
    let calls_at_start = calls(&world) / nodes as f64;

    world.sleep(TTL * 2).await;
    let writes = world.seen.lock().unwrap().store_writes;
    world.sleep(TTL * 10).await;
    let writes = world.seen.lock().unwrap().store_writes - writes;

    let (before, start) = (calls(&world), world.env.now());
    let newcomer = world.add();
    let joined = world.nodes[newcomer].bootstrap.as_ref().unwrap().joined().await;
    assert!(joined.is_ok());
    let let_in = world.env.now() - start;
    // What it asks in its first second, and what the manager does about it.
    world.sleep(Duration::from_secs(1)).await;
    Figures {
        whole,
        let_in,
        calls_at_start,
        calls_to_join: calls(&world) - before,
        writes_per_second: writes as f64 / (TTL * 10).as_secs_f64(),
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    println!("| nodes | 2 | 10 | 100 |\n| --- | ---: | ---: | ---: |");
    let sizes = [2, 10, 100];
    let all: Vec<Vec<Figures>> = sizes
        .iter()
        .map(|nodes| (0..SEEDS).map(|seed| in_virtual_time(measure(seed, *nodes))).collect())
        .collect();
    let row = |name: &str, figure: &dyn Fn(&Figures) -> f64, digits: usize| {
        let of = |figures: &Vec<Figures>| format!("{:.digits$}", median(figures.iter().map(figure).collect()));
        let cells: Vec<String> = all.iter().map(of).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    let intervals = |time: Duration| time.as_secs_f64() / GOSSIP_INTERVAL.as_secs_f64();
    row(
        "all started at once: one converged cluster, gossip intervals",
        &|f| intervals(f.whole),
        2,
    );
    row("one more: let in after, gossip intervals", &|f| intervals(f.let_in), 3);
    row("all started at once: store requests per node", &|f| f.calls_at_start, 1);
    row(
        "one more: store requests, the manager's included",
        &|f| f.calls_to_join,
        1,
    );
    row("formed: store writes per second (ttl 4 s)", &|f| f.writes_per_second, 2);
}
