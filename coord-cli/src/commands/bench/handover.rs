use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use coordkit::{Coordinator, CoordinatorExt, Election, ElectionConfig, Env, Instant, Key, Leadership, Session, Task};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::counted::Counted;
use super::{Samples, shown};
use crate::app::App;
use crate::cli::Global;
use crate::commands::elect::RecipeName;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::shutdown::Shutdown;
use crate::waiting;

/// How long it takes from a leader's resignation until the next one leads
///
/// The requests per hand-over are those of all candidates: of the one that resigns, of the next, of all that are woken
/// for nothing, and of the one that resigned to line up again.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord bench handover --candidates 16 --rounds 100 --store etcd://localhost:2379")]
pub(crate) struct Handover {
    /// How many candidates there are
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=10_000))]
    candidates: u16,
    /// How often leadership is handed over
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How candidates find their leader
    #[arg(long, value_enum, default_value_t)]
    recipe: RecipeName,
}

#[derive(Debug, Serialize)]
struct Row {
    bench: &'static str,
    driver: &'static str,
    recipe: &'static str,
    candidates: u16,
    rounds: u32,
    p50_us: u64,
    p99_us: u64,
    requests_per_handover: f64,
}

/// Who has been elected, when, and how to have it line up again.
struct Elected {
    leadership: Leadership,
    at: Instant,
    again: oneshot::Sender<()>,
}

/// Candidates share so many connections at most.
const CONNECTIONS: u16 = 8;
/// In which whoever resigned lines up again.
const PAUSE: Duration = Duration::from_millis(30);
/// How long a hand-over may take before something is wrong.
const LONGEST: Duration = Duration::from_secs(60);

// === impl Handover ===

impl Handover {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let app = App::new(global, [])?;
        let janitor = app.connect()?;
        let name = format!("/bench-{}", janitor.env().nonce());
        let key = Key::new(name).map_err(Exit::failed)?;
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Err(Exit::failed("bench: stopped before its end")),
            result = self.measure(&app, &janitor, &key) => result,
        };
        if let Err(error) = janitor.delete_recursive(&key).await
            && !error.is_not_found()
        {
            tracing::warn!("{key} is left in the store: {error}");
        }
        janitor.close().await.ok();
        let row = result?;
        let words = format!(
            "hand-over of {} candidates, {} rounds ({}, {}): p50 {}, p99 {}, {:.1} requests each",
            row.candidates,
            row.rounds,
            row.driver,
            row.recipe,
            shown(row.p50_us),
            shown(row.p99_us),
            row.requests_per_handover,
        );
        app.out.row(&row, words).await
    }

    async fn measure(&self, app: &App, janitor: &Arc<dyn Coordinator>, key: &Key) -> Result<Row, Exit> {
        waiting::for_the_store(janitor, &app.config.store).await?;
        let env = janitor.env();
        let requests = Arc::new(AtomicU64::new(0));
        let (sender, mut elected) = mpsc::channel(1);
        let mut sessions = Vec::new();
        for _ in 0..self.candidates.min(CONNECTIONS) {
            let coordinator = Counted::new(app.connect()?, &requests);
            sessions.push(Session::open(coordinator, app.config.session_config())?);
        }
        let candidates: Vec<Task> = (0..self.candidates)
            .zip(sessions.iter().cycle())
            .map(|(number, session)| {
                let config = ElectionConfig {
                    recipe: self.recipe.into(),
                    ..app.config.election_config(key.clone(), format!("candidate-{number}"))
                };
                env.spawn(candidate(Election::new(session, config), env.clone(), sender.clone()))
            })
            .collect();
        drop(sender);
        let mut leader = next(&mut elected).await?;
        if let RecipeName::Sequence = self.recipe {
            self.all_lined_up(janitor, key).await?;
        }
        let (mut samples, mut progress) = (
            Samples::default(),
            Progress::start(self.rounds as usize, app.out.is_terminal()),
        );
        env.sleep(PAUSE).await;
        let before = requests.load(Ordering::Relaxed);
        for round in 0..self.rounds {
            let from = env.now();
            let resigned = leader.leadership.resign();
            let (resigned, following) = tokio::join!(resigned, next(&mut elected));
            resigned?;
            let following = following?;
            samples.add(following.at - from);
            let _ = leader.again.send(());
            leader = following;
            env.sleep(PAUSE).await;
            progress.show(round as usize + 1);
        }
        let asked = requests.load(Ordering::Relaxed) - before;
        drop((progress, candidates, leader));
        for session in sessions {
            session.coordinator().close().await.ok();
        }
        Ok(Row {
            bench: "handover",
            driver: janitor.capabilities().driver,
            recipe: self.recipe.name(),
            candidates: self.candidates,
            rounds: self.rounds,
            p50_us: samples.quantile_us(0.5),
            p99_us: samples.quantile_us(0.99),
            requests_per_handover: asked as f64 / f64::from(self.rounds),
        })
    }

    async fn all_lined_up(&self, janitor: &Arc<dyn Coordinator>, key: &Key) -> Result<(), Exit> {
        let env = janitor.env();
        let deadline = env.now() + LONGEST;
        while janitor.children(key).await?.len() < usize::from(self.candidates) {
            if env.now() > deadline {
                return Err(Exit::failed(format!(
                    "bench: not all candidates lined up within {LONGEST:?}"
                )));
            }
            env.sleep(PAUSE).await;
        }
        Ok(())
    }
}

async fn candidate(election: Election, env: Env, elected: mpsc::Sender<Elected>) {
    while let Ok(leadership) = election.campaign().await {
        let at = env.now();
        let (again, wait) = oneshot::channel();
        let news = Elected { leadership, at, again };
        if elected.send(news).await.is_err() || wait.await.is_err() {
            return;
        }
    }
}

async fn next(elected: &mut mpsc::Receiver<Elected>) -> Result<Elected, Exit> {
    match tokio::time::timeout(LONGEST, elected.recv()).await {
        Ok(Some(elected)) => Ok(elected),
        Ok(None) => Err(Exit::failed("bench: no candidate is left; see the warnings above")),
        Err(_) => Err(Exit::failed(format!("bench: nobody was elected within {LONGEST:?}"))),
    }
}
