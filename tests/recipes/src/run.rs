use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;

use crate::{SCENARIOS, Scenario, World};

/// No scenario waits this long for anything on purpose.
const HANGS: Duration = Duration::from_secs(180);

/// Runs all scenarios against real servers, each in a world of its own and `at_once` at a time: they mostly wait for
/// leases to end. `COORD_SCENARIO=<name>` runs that one alone.
///
/// # Panics
/// When one does not hold; the others are finished first.
pub async fn run_all<W, F>(at_once: usize, world: impl Fn() -> F)
where
    W: World + 'static,
    F: Future<Output = Arc<W>> + Send + 'static,
{
    let only = std::env::var("COORD_SCENARIO").ok();
    let chosen = SCENARIOS
        .iter()
        .filter(|scenario| only.as_ref().is_none_or(|only| scenario.name == only));
    let failed: Vec<&str> = futures::stream::iter(chosen)
        .map(|scenario| run(scenario, world()))
        .buffer_unordered(at_once)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    assert!(failed.is_empty(), "{} of the scenarios: {failed:?}", failed.len());
}

/// The name, if it failed.
async fn run<W, F>(scenario: &'static Scenario, world: F) -> Option<&'static str>
where
    W: World + 'static,
    F: Future<Output = Arc<W>> + Send + 'static,
{
    let started = Instant::now();
    // A task of its own, so that a panic in one scenario leaves the others alone.
    let run = tokio::spawn(async move {
        let run = scenario.run(world.await);
        let ended = tokio::time::timeout(HANGS, run).await;
        assert!(ended.is_ok(), "{} hangs", scenario.name);
    });
    let held = run.await.is_ok();
    let outcome = if held { "ok" } else { "FAILED" };
    println!(
        "{:6.1} s  {outcome:6}  {}",
        started.elapsed().as_secs_f64(),
        scenario.name
    );
    (!held).then_some(scenario.name)
}
