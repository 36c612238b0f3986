//! Random lives of clusters of 5 to 50 nodes: 1,000 seeds, in eight parts that the test runner runs side by side.
//! `COORD_CLUSTER_SEEDS=n` runs more or fewer; `COORD_CLUSTER_SEED=n` replays one.

use coord_cluster::sim::Schedule;

const PARTS: u64 = 8;

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn live_seeds(part: u64) {
    let seeds = env("COORD_CLUSTER_SEEDS").unwrap_or(1000);
    let range: Vec<u64> = match env("COORD_CLUSTER_SEED") {
        Some(seed) if part == 0 => vec![seed],
        Some(_) => vec![],
        None => (0..seeds).filter(|seed| seed % PARTS == part).collect(),
    };
    for seed in range {
        if let Err(violation) = Schedule::from_seed(seed).run() {
            panic!("seed {seed} (replay with COORD_CLUSTER_SEED={seed}): {violation}");
        }
    }
}

macro_rules! parts {
    ($($name:ident = $part:expr),*) => {
        $(#[test]
        fn $name() {
            live_seeds($part);
        })*
    };
}

parts!(
    seeds_part_0 = 0,
    seeds_part_1 = 1,
    seeds_part_2 = 2,
    seeds_part_3 = 3,
    seeds_part_4 = 4,
    seeds_part_5 = 5,
    seeds_part_6 = 6,
    seeds_part_7 = 7
);

#[test]
fn one_seed_run_twice_gives_the_same_history() {
    for seed in [3, 17, 99] {
        assert_eq!(Schedule::from_seed(seed).run(), Schedule::from_seed(seed).run());
    }
}
