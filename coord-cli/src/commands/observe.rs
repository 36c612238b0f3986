use clap::Args;
use coordkit::{Observation, Observer};
use serde::Serialize;

use super::elect::{RecipeName, election_key};
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::output::Output;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Tell who leads an election, and each change of that, without taking part
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord observe nightly --store etcd://localhost:2379")]
pub(crate) struct Observe {
    /// Which election: a name, or a key
    election: String,
    /// How its candidates find their leader; the same for all of them
    #[arg(long, value_enum, default_value_t)]
    recipe: RecipeName,
}

/// Another leader is seen, or none.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename = "leader")]
pub(crate) struct LeaderRow<'a> {
    election: &'a str,
    name: Option<&'a str>,
    token: Option<u64>,
    boot_ns: u64,
}

// === impl Observe ===

impl Observe {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let key = election_key(&self.election)?;
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let mut observer = Observer::new(coordinator.clone(), key, self.recipe.into());
        let observing = async {
            waiting::for_the_store(&coordinator, &app.config.store).await?;
            while let Some(observation) = observer.changed().await {
                tell_leader(
                    &app.out,
                    &self.election,
                    &observation,
                    nanoseconds(coordinator.env().now()),
                )
                .await?;
            }
            Err(Exit::failed("the connection was closed"))
        };
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Ok(()),
            () = app.out.closed() => Err(Exit::pipe()),
            result = observing => result,
        };
        coordinator.close().await.ok();
        result
    }
}

/// The moment as CLOCK_BOOTTIME in nanoseconds.
pub(crate) fn nanoseconds(instant: coordkit::Instant) -> u64 {
    u64::try_from(instant.since_start().as_nanos()).unwrap_or(u64::MAX)
}

/// One line about who leads; none while nothing is known.
pub(crate) async fn tell_leader(out: &Output, election: &str, seen: &Observation, boot_ns: u64) -> Result<(), Exit> {
    if *seen == Observation::Unknown {
        return Ok(());
    }
    let leader = seen.leader();
    let row = LeaderRow {
        election,
        name: leader.map(|leader| leader.name.as_str()),
        token: leader.map(|leader| leader.token),
        boot_ns,
    };
    let words = match leader {
        Some(leader) => format!("leader     {} (token {})", Escaped::new(&leader.name), leader.token),
        None => "leader     nobody".to_owned(),
    };
    out.row(&row, words).await
}
