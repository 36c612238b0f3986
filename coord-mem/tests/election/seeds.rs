//! Simulated trouble from a seed, checked history.
//!
//! `COORD_SEEDS=100000` runs more; a failure prints its seed, and `COORD_SEED=<seed>` runs that one alone.

use std::collections::BTreeMap;

use coord_api::Recipe;

use crate::sim::{Honest, simulate};

const KINDS: [&str; 15] = [
    // To a connection or a process.
    "cut",
    "swallowed",
    "healed",
    "paused",
    "resumed",
    "jumped",
    // To a call.
    "not sent",
    "request lost",
    "answer lost",
    "arrived late",
    "request delayed",
    "answer delayed",
    // To a lease, and to watches.
    "lease to end early",
    "event late",
    "gap",
];

/// Side by side on two cores.
const PARTS: u64 = 2;

fn seeds(part: u64, parts: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("COORD_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("COORD_SEEDS").unwrap_or(2000))
            .filter(|seed| seed % parts == part)
            .collect(),
    }
}

fn no_seed_breaks_it(recipe: Recipe, part: u64) {
    let mut elections = 0;
    for seed in seeds(part, PARTS) {
        let outcome = simulate(seed, recipe, Honest);
        if !outcome.violations.is_empty() {
            panic!(
                "{recipe:?}, COORD_SEED={seed}: {:#?}\n{}",
                outcome.violations,
                outcome.log.join("\n")
            );
        }
        elections += outcome.elections;
    }
    eprintln!("{recipe:?}: {elections} elections");
}

#[test]
fn sequence_even_seeds() {
    no_seed_breaks_it(Recipe::Sequence, 0);
}

#[test]
fn sequence_odd_seeds() {
    no_seed_breaks_it(Recipe::Sequence, 1);
}

#[test]
fn cas_even_seeds() {
    no_seed_breaks_it(Recipe::Cas, 0);
}

#[test]
fn cas_odd_seeds() {
    no_seed_breaks_it(Recipe::Cas, 1);
}

/// Each kind of trouble happens, and often.
#[test]
fn every_kind_of_fault_is_injected() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        let mut injected = BTreeMap::new();
        for seed in 0..60 {
            for (what, times) in simulate(seed, recipe, Honest).injected {
                *injected.entry(what).or_default() += times;
            }
        }
        eprintln!("{recipe:?}: {injected:?}");
        for kind in KINDS {
            let times = injected.get(kind).copied().unwrap_or(0);
            assert!(times >= 50, "{recipe:?}: {kind} happened {times} times: {injected:?}");
        }
    }
}

#[test]
fn one_seed_gives_one_history() {
    for seed in 0..50 {
        for recipe in [Recipe::Sequence, Recipe::Cas] {
            let (one, other) = (simulate(seed, recipe, Honest), simulate(seed, recipe, Honest));
            assert_eq!(one.log, other.log, "seed {seed}");
        }
    }
}
