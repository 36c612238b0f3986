//! Deliberately wrong recipes: the simulation must notice each of them.

use std::sync::Arc;
use std::time::Duration;

use crate::mutant::{Mutant, Wrong};
use crate::sim::{Player, Work, simulate};
use coord_api::{Coordinator, Election, ElectionConfig, Env, Key, Leadership, Recipe, Session, SessionConfig};
use coord_mem::MemStore;

/// Within so many seeds each mutant is noticed, most of them within the first.
const SEEDS: u64 = 2000;

#[derive(Clone, Copy)]
struct Through(Mutant);

impl Player for Through {
    fn coordinator(&self, seen: Arc<dyn Coordinator>) -> Arc<dyn Coordinator> {
        Arc::new(Wrong::new(seen, self.0))
    }
}

/// Releases as soon as the work is told to stop, not when it has.
#[derive(Clone, Copy)]
struct ReleasesBeforeTheWorkHasStopped;

impl Player for ReleasesBeforeTheWorkHasStopped {
    async fn run(&self, election: Arc<Election>, work: Work) {
        while let Ok(leadership) = election.campaign().await {
            let term = leadership.term();
            let working = work.clone().during(term.clone());
            let releasing = async {
                term.stopped().await;
                let _ = leadership.resign().await;
            };
            let enough = work.env.now() + Duration::from_secs(25);
            let _ = futures::join!(working, work.env.timeout_at(enough, releasing));
        }
    }
}

/// Asks the clock whether to stop, so that a late renewal undoes it.
#[derive(Clone, Copy)]
struct RenewalUndoesAStop;

impl Player for RenewalUndoesAStop {
    async fn run(&self, election: Arc<Election>, work: Work) {
        while let Ok(leadership) = election.campaign().await {
            let due = |leadership: &Leadership| !leadership.is_valid() || work.env.now() >= leadership.stop_at();
            let stopped = async {
                while !due(&leadership) {
                    work.env.sleep(Duration::from_millis(20)).await;
                }
            };
            let term = leadership.term();
            let _ = work.clone().told_by(&term, stopped, || due(&leadership)).await;
            let _ = leadership.resign().await;
        }
    }
}

/// Hears only of the loss, not of the call to stop before it.
#[derive(Clone, Copy)]
struct StopsAtTheLoss;

impl Player for StopsAtTheLoss {
    async fn run(&self, election: Arc<Election>, work: Work) {
        while let Ok(leadership) = election.campaign().await {
            let term = leadership.term();
            let lost = async {
                let _ = term.lost().await;
            };
            let _ = work.clone().told_by(&term, lost, || true).await;
            let _ = leadership.resign().await;
        }
    }
}

fn is_noticed<P: Player + Copy>(what: &str, recipe: Recipe, player: P, expected: &str) {
    for seed in 0..SEEDS {
        let found = simulate(seed, recipe, player);
        let violations = &found.violations;
        if violations.iter().any(|violation| violation.contains(expected)) {
            eprintln!("{what} of {recipe:?}: seed {seed}: {}", violations[0]);
            let again = simulate(seed, recipe, player);
            assert_eq!(found.log, again.log, "a failing seed replays exactly");
            assert_eq!(found.violations, again.violations);
            return;
        }
    }
    panic!("{what} of {recipe:?} went unnoticed");
}

#[test]
fn deadline_counted_from_the_answer() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("deadline", recipe, Through(Mutant::DeadlineFromAnswer), "lead at once");
    }
}

#[test]
fn acknowledged_renewal_taken_for_proof() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("proof", recipe, Through(Mutant::AcknowledgedIsProven), "lead at once");
    }
}

/// Without anybody looking at the moment itself: by what the candidates wrote.
#[test]
fn overlaps_show_in_the_written_history() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("lines", recipe, Through(Mutant::DeadlineFromAnswer), "both valid: ");
    }
}

#[test]
fn unguarded_resign() {
    is_noticed("resign", Recipe::Cas, Through(Mutant::UnguardedResign), "at once");
}

#[test]
fn no_standing_before_granting() {
    is_noticed(
        "grant",
        Recipe::Sequence,
        Through(Mutant::NoStandingBeforeGrant),
        "lead at once",
    );
}

#[test]
fn name_order_instead_of_created() {
    is_noticed("order", Recipe::Sequence, Through(Mutant::NameOrder), "lead at once");
}

#[test]
fn unknown_create_settled_by_looking() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("looking", recipe, Through(Mutant::SettledByLooking), "candidates");
    }
}

#[test]
fn nothing_abandoned() {
    is_noticed(
        "abandon",
        Recipe::Sequence,
        Through(Mutant::NothingAbandoned),
        "candidates",
    );
}

#[test]
fn release_not_tried_again() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("release", recipe, Through(Mutant::ReleasedOnce), "candidates");
    }
}

#[test]
fn renewal_that_undoes_a_stop() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("stop", recipe, RenewalUndoesAStop, "and then not");
    }
}

#[test]
fn release_before_the_work_has_stopped() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("early release", recipe, ReleasesBeforeTheWorkHasStopped, "work of");
    }
}

#[test]
fn work_that_is_told_of_the_loss_only() {
    for recipe in [Recipe::Sequence, Recipe::Cas] {
        is_noticed("late stop", recipe, StopsAtTheLoss, "was told to stop");
    }
}

/// How many looks at the store one resignation among eight candidates costs.
fn looks_per_hand_over(mutant: Mutant) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let env = Env::simulated(7);
        let store = MemStore::new(&env);
        let mut sessions = vec![];
        let (won, mut winners) = tokio::sync::mpsc::unbounded_channel::<Leadership>();
        let mut views = vec![];
        let mut tasks = vec![];
        for who in 0..8 {
            let view = Wrong::new(store.client(), mutant);
            let session = Session::open(Arc::new(view.clone()), SessionConfig::default()).unwrap();
            let config = ElectionConfig::new(Key::new("/election").unwrap(), format!("c{who}"));
            let election = Election::new(&session, config);
            let won = won.clone();
            tasks.push(env.spawn(async move {
                let _ = won.send(election.campaign().await.unwrap());
            }));
            views.push(view);
            sessions.push(session);
            env.sleep(Duration::from_millis(100)).await;
        }
        let looks = || views.iter().map(Wrong::standings).sum::<usize>();
        let first = winners.recv().await.unwrap();
        env.sleep(Duration::from_secs(1)).await;
        let before = looks();
        first.resign().await.unwrap();
        let _second = winners.recv().await.unwrap();
        env.sleep(Duration::from_secs(1)).await;
        looks() - before
    })
}

#[test]
fn watching_the_leader_wakes_the_herd_and_the_predecessor_wakes_one() {
    assert_eq!(looks_per_hand_over(Mutant::None), 1);
    assert_eq!(looks_per_hand_over(Mutant::WatchesTheLeader), 7);
}
