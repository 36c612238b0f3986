//! Whole lives of bootstrapped clusters from a seed: a store in memory, a simulated network, virtual time, and everything
//! that goes wrong.
//!
//! `COORD_SEEDS=100000` runs more; a failure prints its seed, and `COORD_SEED=<seed>` runs that one alone.

mod attacks;
mod check;
mod life;
mod network;
mod scenes;
mod witness;
mod world;

use life::live;

const PARTS: u64 = 4;

fn seeds(part: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("COORD_SEED") {
        Some(seed) if part == 0 => vec![seed],
        Some(_) => vec![],
        None => (0..number("COORD_SEEDS").unwrap_or(2000))
            .filter(|seed| seed % PARTS == part)
            .collect(),
    }
}

fn no_seed_breaks_it(part: u64) {
    let started = std::time::Instant::now();
    let (mut generations, mut healed) = (0, std::time::Duration::ZERO);
    let seeds = seeds(part);
    for seed in &seeds {
        let outcome = live(*seed);
        if std::env::var_os("COORD_SEED").is_some() {
            println!("{}", outcome.log.join("\n"));
        }
        if !outcome.violations.is_empty() {
            panic!(
                "COORD_SEED={seed}: {:#?}\n{}",
                outcome.violations,
                outcome.log.join("\n")
            );
        }
        generations += outcome.formed;
        healed = healed.max(outcome.healed);
    }
    let (count, took) = (seeds.len(), started.elapsed());
    eprintln!("{count} lives, {generations} clusters formed, healed within {healed:?} of virtual time, in {took:?}");
}

#[test]
fn no_seed_breaks_it_first_quarter() {
    no_seed_breaks_it(0);
}

#[test]
fn no_seed_breaks_it_second_quarter() {
    no_seed_breaks_it(1);
}

#[test]
fn no_seed_breaks_it_third_quarter() {
    no_seed_breaks_it(2);
}

#[test]
fn no_seed_breaks_it_fourth_quarter() {
    no_seed_breaks_it(3);
}

#[test]
fn one_seed_gives_one_history() {
    for seed in 0..20 {
        assert_eq!(live(seed).log, live(seed).log, "seed {seed}");
    }
}
