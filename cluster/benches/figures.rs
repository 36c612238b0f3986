//! The figures of the cluster, measured in simulation: `cargo bench -p coord-cluster`.
//! `COORD_CLUSTER_BENCH_SIZES=10,100` and `COORD_CLUSTER_BENCH_MINUTES=5` make it shorter.

use std::time::{Duration, Instant};

use coord_cluster::sim::{Network, Sim};
use coord_cluster::{ClusterId, Event, GossipState, Incarnation, Input, MemberState, NodeId};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const LIMIT: Duration = Duration::from_secs(120);
const WAVE: usize = 100;

struct Figures {
    nodes: usize,
    up: Vec<Duration>,
    unreachable: Vec<Duration>,
    long_run: LongRun,
    idle: Idle,
    wave: Option<Duration>,
}

struct LongRun {
    hours: f64,
    falsely_down: usize,
    healed: usize,
    healed_votes: u64,
    times_real: f64,
}

struct Idle {
    bytes_per_second: f64,
    messages_per_second: f64,
    state_bytes: usize,
    times_real: f64,
}

fn sizes() -> Vec<usize> {
    let list = std::env::var("COORD_CLUSTER_BENCH_SIZES").unwrap_or_else(|_| "10,100,1000".into());
    list.split(',').filter_map(|size| size.parse().ok()).collect()
}

fn minutes() -> u64 {
    std::env::var("COORD_CLUSTER_BENCH_MINUTES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60)
}

fn main() {
    println!("cluster figures in simulation (delays 0.5 to 10 ms, default settings):");
    let run = |size| std::thread::spawn(move || measure(size));
    let threads: Vec<_> = sizes().into_iter().rev().map(run).collect();
    let mut figures: Vec<Figures> = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    figures.reverse();
    print_table(&figures);
}

fn measure(nodes: usize) -> Figures {
    let (seeds, samples) = match nodes {
        0..=10 => (40, 10),
        11..=100 => (10, 20),
        _ => (4, 30),
    };
    let (mut up, mut unreachable) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let mut sim = timed(nodes, "forming", || formed(seed, nodes, Network::default()));
        timed(nodes, "joins", || up.extend((0..samples).map(|_| time_to_up(&mut sim))));
        let mut crash = |sample| time_to_unreachable(&mut sim, seed * 1000 + sample);
        timed(nodes, "crashes", || unreachable.extend((0..samples).map(&mut crash)));
    }
    up.sort();
    unreachable.sort();
    let idle = timed(nodes, "idle", || idle(nodes));
    let wave = timed(nodes, "wave", || wave(nodes));
    let long_run = timed(nodes, "long run", || long_run(nodes));
    Figures {
        nodes,
        up,
        unreachable,
        long_run,
        idle,
        wave,
    }
}

/// Progress on standard error for whoever waits.
fn timed<T>(nodes: usize, what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    if nodes >= 1000 {
        eprintln!("  {nodes} nodes, {what}: {:.1} s", start.elapsed().as_secs_f64());
    }
    result
}

fn formed(seed: u64, nodes: usize, network: Network) -> Sim {
    let mut sim = Sim::new(seed, network);
    grow(&mut sim, nodes);
    sim
}

fn grow(sim: &mut Sim, nodes: usize) {
    let founder = sim.add_node();
    sim.form(founder);
    for node in 1..nodes {
        sim.add_node();
        sim.join(node, &[founder]);
    }
    sim.run_until_converged(LIMIT).expect("the cluster forms");
}

/// From the join to the moment at which every node sees the newcomer up.
fn time_to_up(sim: &mut Sim) -> Duration {
    let node = sim.add_node();
    let contact = sim.running().nth(node / 2).unwrap_or(0);
    sim.join(node, &[contact]);
    let newcomer = sim.core(node).self_node().clone();
    let took = sim.run_until_true(LIMIT, |sim| {
        sim.running().all(|other| {
            let snapshot = sim.core(other).snapshot();
            snapshot.is_some_and(|snapshot| snapshot.state().state_of(&newcomer) == Some(MemberState::Up))
        })
    });
    sim.run_until_converged(LIMIT).expect("converges again");
    took.unwrap_or(LIMIT)
}

/// From the crash to the moment at which every node sees the victim unreachable.
fn time_to_unreachable(sim: &mut Sim, seed: u64) -> Duration {
    let running: Vec<usize> = sim.running().collect();
    let mut rng = SmallRng::seed_from_u64(seed);
    sim.run_for(Duration::from_millis(rng.random_range(5000..6000)));
    let victim = running[rng.random_range(0..running.len())];
    let dead = sim.core(victim).self_node().clone();
    sim.crash(victim);
    let sees = |sim: &Sim, node: usize| is_unreachable(sim, node, &dead);
    let took = sim.run_until_true(LIMIT, |sim| sim.running().all(|node| sees(sim, node)));
    let judge = sim.running().next().expect("somebody is left");
    sim.input(judge, Input::Down { node: dead.clone() });
    sim.run_until_converged(LIMIT).expect("converges without the dead");
    took.unwrap_or(LIMIT)
}

fn is_unreachable(sim: &Sim, node: usize, dead: &NodeId) -> bool {
    sim.core(node).is_unreachable(dead)
}

fn idle(nodes: usize) -> Idle {
    let mut sim = formed(77, nodes, Network::default());
    sim.run_for(Duration::from_secs(30));
    sim.measure_traffic();
    let (start, time) = (Instant::now(), Duration::from_secs(60));
    sim.run_for(time);
    let per_node = |count: u64| count as f64 / time.as_secs_f64() / nodes as f64;
    Idle {
        bytes_per_second: per_node(sim.traffic().bytes),
        messages_per_second: per_node(sim.traffic().sent),
        state_bytes: state_bytes(nodes),
        times_real: time.as_secs_f64() / start.elapsed().as_secs_f64(),
    }
}

/// A state with names and incarnations as long as real ones, a full clock, and as many tombstones as members.
fn state_bytes(nodes: usize) -> usize {
    let name = |life: &str, n: usize| {
        format!("{life}-{n:04}.cluster.example.internal:7400")
            .parse()
            .expect("an address")
    };
    let node = |life: &str, n: usize| NodeId::new(name(life, n), Incarnation(1_790_000_000_000_000 + n as u64));
    let mut state = GossipState::new(ClusterId::random());
    for n in 0..nodes {
        state.advance(&node("gone", n), MemberState::Removed);
        state.advance(&node("node", n), MemberState::Up);
        state.bump(node("node", n).key());
    }
    postcard::to_stdvec(&state).expect("encodes").len()
}

fn wave(nodes: usize) -> Option<Duration> {
    let mut sim = formed(5, nodes, Network::default());
    for _ in 0..WAVE {
        let node = sim.add_node();
        sim.join(node, &[node % nodes]);
    }
    sim.run_until_converged(LIMIT)
}

/// An hour with 5 % loss in which every node stops for 2 s about every five minutes, with automatic downing.
fn long_run(nodes: usize) -> LongRun {
    let network = Network {
        loss: 0.05,
        ..Network::default()
    };
    let mut sim = Sim::new(9, network);
    sim.down_after(Duration::from_secs(10));
    grow(&mut sim, nodes);
    sim.record_events();
    let mut rng = SmallRng::seed_from_u64(9);
    let (start, seconds) = (Instant::now(), minutes() * 60);
    let (mut falsely_down, mut healed) = (0, 0);
    for _ in 0..seconds {
        for node in 0..nodes {
            if rng.random_bool(1.0 / 300.0) {
                sim.pause(node, Duration::from_secs(2));
            }
        }
        sim.run_for(Duration::from_secs(1));
        for (_, node, event) in sim.take_events() {
            // Nobody crashes here, so every down is false. Each change is counted once, in the view of one node.
            falsely_down += usize::from(
                node == 0
                    && matches!(
                        event,
                        Event::Member {
                            to: MemberState::Down,
                            ..
                        }
                    ),
            );
            falsely_down += usize::from(matches!(event, Event::Reborn { .. }));
            healed += usize::from(node == 0 && matches!(event, Event::Reachable { .. }));
        }
    }
    // Each suspicion and each recovery of an observer is one version of its row.
    let rows = sim
        .core(0)
        .snapshot()
        .expect("a member")
        .state()
        .reachability()
        .values();
    let healed_votes = rows.map(|row| row.version / 2).sum();
    LongRun {
        healed_votes,
        hours: seconds as f64 / 3600.0,
        falsely_down,
        healed,
        times_real: seconds as f64 / start.elapsed().as_secs_f64(),
    }
}

fn p(sorted: &[Duration], share: f64) -> String {
    let index = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len());
    format!("{:.2} s", sorted[index - 1].as_secs_f64())
}

fn print_table(figures: &[Figures]) {
    let row = |name: &str, target: &str, cell: &dyn Fn(&Figures) -> String| {
        let cells: Vec<String> = figures.iter().map(|figures| format!("{:>12}", cell(figures))).collect();
        println!("| {name:<46} | {target:<12} | {} |", cells.join(" | "));
    };
    row("nodes", "", &|f| f.nodes.to_string());
    println!(
        "|{}|{}|{}",
        "-".repeat(48),
        "-".repeat(14),
        "-------------:|".repeat(figures.len())
    );
    row("samples (joins, crashes)", "", &|f| f.up.len().to_string());
    row("all see a new node up, median", "", &|f| p(&f.up, 0.5));
    row("all see a new node up, p99", "20 intervals", &|f| p(&f.up, 0.99));
    row("all see a crashed node unreachable, median", "", &|f| {
        p(&f.unreachable, 0.5)
    });
    row("all see a crashed node unreachable, p99", "10 s", &|f| {
        p(&f.unreachable, 0.99)
    });
    row("hours with 5 % loss and 2 s pauses", "1", &|f| {
        format!("{:.2}", f.long_run.hours)
    });
    row("  nodes downed falsely", "0", &|f| f.long_run.falsely_down.to_string());
    row("  unreachable to all, and healed", "counted", &|f| {
        f.long_run.healed.to_string()
    });
    row("  suspected by one observer, and healed", "counted", &|f| {
        f.long_run.healed_votes.to_string()
    });
    row("  faster than real time", "10x", &|f| {
        format!("{:.0}x", f.long_run.times_real)
    });
    row("idle traffic per node", "5 kB/s", &|f| {
        format!("{:.0} B/s", f.idle.bytes_per_second)
    });
    row("idle messages per node", "", &|f| {
        format!("{:.1} /s", f.idle.messages_per_second)
    });
    row("idle, faster than real time", "10x", &|f| {
        format!("{:.0}x", f.idle.times_real)
    });
    row("encoded state, as many tombstones as members", "1 MB", &|f| {
        format!("{} B", f.idle.state_bytes)
    });
    row("a wave of 100 joining nodes converges in", "converges", &|f| {
        f.wave
            .map_or("not".into(), |wave| format!("{:.2} s", wave.as_secs_f64()))
    });
}
