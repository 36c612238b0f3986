use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use clap::Args;
use coord_conformance::{BEHAVIOURS, Opener, Outcome};
use coordkit::{Config, Coordinator};
use futures::StreamExt;
use serde::Serialize;

use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Check that a store keeps every promise of the contract
///
/// Each promise is checked below a key of its own, /conformance-…, which is removed afterwards; nothing else in
/// the store is touched. Exit code 0 only if every promise is kept.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord conformance --store etcd://localhost:2379")]
pub(crate) struct Conformance {
    /// How many promises are checked at the same time: most of the time is spent waiting for leases to end
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    at_once: u8,
    /// Only those with this text in their group or name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    group: &'a str,
    name: &'a str,
    passed: bool,
    promise: &'a str,
    failure: Option<String>,
    took_ms: u64,
}

/// Opens clients of the store as it is configured.
struct Store(Config);

#[async_trait]
impl Opener for Store {
    async fn open(&self) -> coordkit::Result<Arc<dyn Coordinator>> {
        coordkit::connect(&self.0)
    }
}

// === impl Conformance ===

impl Conformance {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let shutdown = Shutdown::listen()?;
        let chosen: Vec<_> = BEHAVIOURS.iter().filter(|behaviour| self.chooses(behaviour)).collect();
        if chosen.is_empty() {
            return Err(Exit::usage(
                "conformance: no promise has this text in its group or name",
            ));
        }
        // Held to the end, so that a store in memory is one store.
        let first = app.connect()?;
        tokio::select! {
            biased;
            () = shutdown.requested() => return Err(Exit::failed("conformance: stopped before it began")),
            found = waiting::for_the_store(&first, &app.config.store) => found?,
        }
        let store = Store(app.config.clone());
        let mut progress = Progress::start(chosen.len(), app.out.is_terminal());
        // Those that have begun also clean up, whatever happens: a wish to end only keeps further ones from beginning.
        let stopped = shutdown.clone();
        let behaviours = futures::stream::iter(&chosen).take_until(async move { stopped.requested().await });
        let mut outcomes = pin!(
            behaviours
                .map(|behaviour| coord_conformance::run(behaviour, &store))
                .buffered(usize::from(self.at_once))
        );
        let (mut done, mut failed) = (0, 0);
        while let Some(outcome) = outcomes.next().await {
            done += 1;
            failed += usize::from(!outcome.passed());
            progress.clear();
            tell(&app, &outcome).await?;
            progress.show(done);
        }
        progress.clear();
        first.close().await.ok();
        if !app.out.is_json() {
            let all = chosen.len();
            let words = format!("{} of {all} promises kept by {}", done - failed, app.config.store);
            app.out.row(&(), words).await?;
        }
        match (failed, done == chosen.len()) {
            (0, true) => Ok(()),
            (_, false) => Err(Exit::failed(format!(
                "conformance: stopped after {done} of {}",
                chosen.len()
            ))),
            _ => Err(Exit::failed(format!(
                "conformance: {failed} of {done} promises were not kept"
            ))),
        }
    }

    fn chooses(&self, behaviour: &coord_conformance::Behaviour) -> bool {
        let has = |text: &String| behaviour.name.contains(text.as_str()) || behaviour.group.contains(text.as_str());
        self.only.as_ref().is_none_or(has)
    }
}

async fn tell(app: &App, outcome: &Outcome) -> Result<(), Exit> {
    let behaviour = &outcome.behaviour;
    let row = Row {
        group: behaviour.group,
        name: behaviour.name,
        passed: outcome.passed(),
        promise: behaviour.promise,
        failure: outcome.result.as_ref().err().map(ToString::to_string),
        took_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
    };
    let mark = match (app.out.is_terminal(), row.passed) {
        (true, true) => "\u{1b}[32mkept\u{1b}[0m    ",
        (true, false) => "\u{1b}[31mNOT KEPT\u{1b}[0m",
        (false, true) => "kept    ",
        (false, false) => "NOT KEPT",
    };
    let seconds = outcome.took.as_secs_f64();
    let mut words = format!("{mark}  {:<12} {:<62} {seconds:5.1} s", row.group, row.name);
    if let Some(failure) = &row.failure {
        words += &format!("\n          {}\n          {}", row.promise, Escaped::new(failure));
    }
    app.out.row(&row, words).await
}
