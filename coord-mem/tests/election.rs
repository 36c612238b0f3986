//! The election recipes on the in-memory driver: simulated trouble from a seed, checked history.
//!
//! `COORD_SEEDS=100000` runs more; a failure prints its seed, and `COORD_SEED=<seed>` runs that one alone.

#[path = "election/history.rs"]
#[allow(missing_docs, dead_code)]
mod history;
#[path = "election/sim.rs"]
#[allow(missing_docs, dead_code)]
mod sim;

use coord_api::Recipe;
use sim::{Honest, simulate};

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
    for seed in seeds(part, 4) {
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
    assert!(elections > 0);
    eprintln!("{recipe:?}: {elections} elections");
}

#[test]
fn sequence_a() {
    no_seed_breaks_it(Recipe::Sequence, 0);
}

#[test]
fn sequence_b() {
    no_seed_breaks_it(Recipe::Sequence, 1);
}

#[test]
fn cas_a() {
    no_seed_breaks_it(Recipe::Cas, 2);
}

#[test]
fn cas_b() {
    no_seed_breaks_it(Recipe::Cas, 3);
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
