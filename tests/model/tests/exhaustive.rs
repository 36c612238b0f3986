//! Every order of events within the budget; and that each deliberate fault is found.

use coord_election_model::{Budget, ElectionModel, Mutant, Recipe};
use stateright::{Checker, HasDiscoveries, Model};

fn model(recipe: Recipe, mutant: Option<Mutant>, faults: u8, ends: u8, resigned: u8, cancelled: u8) -> ElectionModel {
    ElectionModel {
        recipe,
        candidates: 3,
        budget: Budget {
            faults,
            ends,
            resignations: resigned,
            cancellations: cancelled,
        },
        mutant,
    }
}

fn holds(model: ElectionModel) {
    let told = format!("{:?} with {:?}", model.recipe, model.budget);
    let checker = model.checker().spawn_dfs().join();
    eprintln!(
        "{told}: {} states, depth {}",
        checker.unique_state_count(),
        checker.max_depth()
    );
    checker.assert_properties();
    assert!(checker.unique_state_count() > 10_000, "the model must not be trivial");
}

fn is_found(recipe: Recipe, mutant: Mutant) {
    let checker = model(recipe, Some(mutant), 1, 1, 1, 1).checker();
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let broken: Vec<_> = checker
        .discoveries()
        .into_keys()
        .filter(|name| !name.starts_with("leadership"))
        .collect();
    assert!(!broken.is_empty(), "{mutant:?} of {recipe:?} went unnoticed");
    eprintln!("{mutant:?} of {recipe:?} breaks {broken:?}");
}

#[test]
fn sequence_with_lost_answers_ends_of_leases_and_resignations() {
    holds(model(Recipe::Sequence, None, 1, 1, 1, 0));
}

#[test]
fn sequence_with_lost_answers_ends_of_leases_and_cancelled_campaigns() {
    holds(model(Recipe::Sequence, None, 1, 1, 0, 1));
    holds(model(Recipe::Sequence, None, 2, 1, 0, 0));
    holds(model(Recipe::Sequence, None, 0, 2, 0, 0));
}

#[test]
fn cas_with_lost_answers_ends_of_leases_and_resignations() {
    holds(model(Recipe::Cas, None, 1, 1, 1, 0));
}

#[test]
fn cas_with_lost_answers_ends_of_leases_and_cancelled_campaigns() {
    holds(model(Recipe::Cas, None, 1, 1, 0, 1));
    holds(model(Recipe::Cas, None, 2, 1, 0, 0));
    holds(model(Recipe::Cas, None, 0, 2, 0, 0));
}

#[test]
fn each_mutant_of_lowest_sequence_is_found() {
    use Mutant::*;
    for mutant in [
        DeadlineFromAnswer,
        EpochIgnored,
        NoLookBeforeGrant,
        SettledByLooking,
        NoCleanUp,
    ] {
        is_found(Recipe::Sequence, mutant);
    }
}

#[test]
fn each_mutant_of_cas_is_found() {
    use Mutant::*;
    for mutant in [
        DeadlineFromAnswer,
        EpochIgnored,
        SettledByLooking,
        UnguardedResign,
        NoCleanUp,
    ] {
        is_found(Recipe::Cas, mutant);
    }
}
