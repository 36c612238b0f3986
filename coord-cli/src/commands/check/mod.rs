mod problems;
mod report;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coordkit::{Config, Coordinator, Error, Grant, Key, Scheme};
use futures::future::join_all;

use crate::app::App;
use crate::cli::Global;
use crate::exit::Exit;
use problems::problems;
use report::{Endpoint, Report};

/// Connect, and tell what can be relied on: the endpoints, the granted ttl, the round trip and the times that follow
///
/// Says what is wrong and what to change. Exit code 0 if the store can be used, even if there are warnings.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord check --store etcd://localhost:2379")]
pub(crate) struct Check {
    /// The ttl to judge [default: the configured one, 10s]
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
}

/// How long one endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Less than two of ZooKeeper's usual ticks; shorter, and the driver would not wait for the answer of a busy server.
const LITTLE: Duration = Duration::from_secs(1);
/// Of so many round trips the median is told.
const ROUND_TRIPS: usize = 15;

// === impl Check ===

impl Check {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, App::flag("--ttl", "session.ttl", self.ttl.as_ref()))?;
        let coordinator = app.connect()?;
        let endpoints = join_all(hosts(&app.config).into_iter().map(ask));
        let (endpoints, measured) = tokio::join!(endpoints, measure(&app.config, &coordinator));
        coordinator.close().await.ok();
        let mut report = Report::new(&app.config, coordinator.capabilities(), endpoints);
        let failure = match measured {
            Ok(measured) => {
                report.add(&app.config, &measured);
                None
            }
            Err(error) => Some(error),
        };
        report.problems = problems(&app.config, &report, failure.as_ref());
        app.out.row(&report, report.words()).await?;
        match failure {
            Some(error) => Err(error.into()),
            None if report.problems.iter().any(|problem| problem.fatal) => {
                Err(Exit::failed("check: with these settings the store cannot be used"))
            }
            None => Ok(()),
        }
    }
}

/// What the store itself had to say.
struct Measured {
    granted: Grant,
    /// What it grants when asked for [`LITTLE`], if that is more.
    shortest: Option<Duration>,
    round_trip: Duration,
}

async fn measure(config: &Config, coordinator: &Arc<dyn Coordinator>) -> Result<Measured, Error> {
    let env = coordinator.env();
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    // The first one connects.
    for number in 0..=ROUND_TRIPS {
        let from = env.now();
        coordinator.get_latest(&probe()).await?;
        if number > 0 {
            trips.push(env.now() - from);
        }
    }
    trips.sort_unstable();
    let granted = coordinator.grant(config.session.ttl).await?;
    coordinator.revoke(granted.lease).await?;
    let shortest = match config.store.scheme {
        // ZooKeeper grants two ticks at least, which tells its tick.
        Scheme::Zk | Scheme::Zks => {
            let least = coordinator.grant(LITTLE).await?;
            coordinator.revoke(least.lease).await?;
            Some(least.ttl).filter(|granted| *granted > LITTLE)
        }
        _ => None,
    };
    Ok(Measured {
        granted,
        shortest,
        round_trip: trips[ROUND_TRIPS / 2],
    })
}

/// The configuration of each server alone.
fn hosts(config: &Config) -> Vec<Config> {
    let alone = |host: &String| {
        let mut alone = config.clone();
        alone.store.hosts = vec![host.clone()];
        alone
    };
    match config.store.scheme {
        Scheme::Mem => Vec::new(),
        _ => config.store.hosts.iter().map(alone).collect(),
    }
}

async fn ask(config: Config) -> Endpoint {
    let answer = async {
        let coordinator = coordkit::connect(&config)?;
        let patient = coordinator.within(PATIENCE);
        let answer = patient.get_latest(&probe()).await;
        coordinator.close().await.ok();
        answer.map(drop)
    };
    Endpoint {
        endpoint: config.store.hosts.concat(),
        error: answer.await.err().map(|error| error.kind().to_string()),
    }
}

/// A key that nobody has.
fn probe() -> Key {
    Key::new("/coord-probe").unwrap_or_else(|_| Key::root())
}
