use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use crate::failure::{Checked, Failure};
use crate::lease::TTL;
use crate::{BEHAVIOURS, Opener, Scratch};

/// The longest that one behaviour may take; those that wait for a lease to end take its ttl and slack.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// So often a behaviour is tried that cannot be judged because machine or store were too slow for it.
const ATTEMPTS: usize = 5;

/// One promise of the contract, and the code that checks it.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// Which part of the contract it belongs to.
    pub group: &'static str,
    /// Its name, unique in the list; also the name of its test.
    pub name: &'static str,
    /// What it proves, in one sentence.
    pub promise: &'static str,
    pub(crate) check: for<'a> fn(&'a Scratch<'a>) -> BoxFuture<'a, Checked>,
}

/// How a behaviour ended.
#[derive(Debug, Clone)]
#[must_use = "it may be a failure"]
pub struct Outcome {
    /// The behaviour.
    pub behaviour: Behaviour,
    /// Whether the promise was kept, or what was seen instead.
    pub result: Result<(), Failure>,
    /// How long it took, by tokio's clock.
    pub took: Duration,
}

/// Checks one behaviour on a fresh scratch key of the store, and cleans up after it. A panic inside is a failure, and
/// so is taking longer than [`DEADLINE`].
pub async fn run(behaviour: &Behaviour, opener: &dyn Opener) -> Outcome {
    let started = tokio::time::Instant::now();
    let result = checked(behaviour, opener).await;
    Outcome {
        behaviour: *behaviour,
        result,
        took: started.elapsed(),
    }
}

/// Checks the whole list, one behaviour after the other.
pub async fn run_all(opener: &dyn Opener) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(BEHAVIOURS.len());
    for behaviour in BEHAVIOURS {
        outcomes.push(run(behaviour, opener).await);
    }
    outcomes
}

/// The whole list in one test, `at_once` behaviours at a time: for stores whose servers take long to start, where most
/// behaviours wait for leases to end. `COORD_BEHAVIOUR=<name>` runs that one alone. Prints how each went.
///
/// # Panics
/// When a promise is not kept; the others are finished first.
pub async fn check_all(opener: &dyn Opener, at_once: usize) {
    let only = std::env::var("COORD_BEHAVIOUR").ok();
    let chosen: Vec<_> = BEHAVIOURS
        .iter()
        .filter(|behaviour| only.as_deref().is_none_or(|only| behaviour.name == only))
        .collect();
    assert!(!chosen.is_empty(), "no behaviour is called {only:?}");
    let outcomes: Vec<_> = futures::stream::iter(chosen)
        .map(|behaviour| run(behaviour, opener))
        .buffer_unordered(at_once)
        .collect()
        .await;
    for outcome in &outcomes {
        println!("{:6.2} s  {outcome}", outcome.took.as_secs_f64());
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| !outcome.passed()).collect();
    let texts: Vec<_> = failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{} not kept:\n{}", failed.len(), texts.join("\n"));
}

/// For the tests that [`conformance_tests!`](crate::conformance_tests) makes: panics if the promise is not kept.
pub async fn assert_kept(name: &str, opener: &dyn Opener) {
    let behaviour = BEHAVIOURS
        .iter()
        .find(|behaviour| behaviour.name == name)
        .expect("the macro takes its names from the list");
    if let Err(failure) = run(behaviour, opener).await.result {
        panic!("not kept: {}\n  {failure}", behaviour.promise);
    }
}

async fn checked(behaviour: &Behaviour, opener: &dyn Opener) -> Checked {
    let mut attempts = 1;
    loop {
        match checked_once(behaviour, opener).await {
            Err(failure) if failure.is_inconclusive() && attempts < ATTEMPTS => attempts += 1,
            verdict => return verdict,
        }
    }
}

async fn checked_once(behaviour: &Behaviour, opener: &dyn Opener) -> Checked {
    let scratch = Scratch::open(opener, behaviour.name).await?;
    let started = tokio::time::Instant::now();
    let check = AssertUnwindSafe((behaviour.check)(&scratch)).catch_unwind();
    let result = match tokio::time::timeout(DEADLINE, check).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(Failure::new(format!("it panicked: {}", panic_text(&*panic)))),
        Err(_) => Err(Failure::new(format!("it was not done within {DEADLINE:?}"))),
    };
    let result = match result {
        // Without the leases that it relies on, what a behaviour sees means nothing: those that were to be kept, and
        // those that were to last a ttl, which has passed.
        Err(failure) if scratch.missed_renewals() || started.elapsed() >= TTL && scratch.keeps_not(failure.lost()) => {
            Err(failure.made_inconclusive())
        }
        result => result,
    };
    // What went wrong first says more than what the clean-up met after it.
    let cleaned = scratch.clean_up().await;
    result.and(cleaned)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

// === impl Behaviour ===

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour")
            .field("group", &self.group)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

// === impl Outcome ===

impl Outcome {
    /// Whether the promise was kept.
    pub fn passed(&self) -> bool {
        self.result.is_ok()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Behaviour { group, name, .. } = self.behaviour;
        match &self.result {
            Ok(()) => write!(f, "passed  {group} {name}"),
            Err(failure) => write!(f, "FAILED  {group} {name}: {failure}"),
        }
    }
}
