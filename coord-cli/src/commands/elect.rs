use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::{Args, ValueEnum};
use coordkit::{Election, ElectionConfig, Env, Key, Recipe, Session, Term};
use futures::FutureExt;
use serde::Serialize;

use super::observe::{nanoseconds, tell_leader};
use crate::app::{App, default_name, parse_name};
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Take part in an election until SIGINT or SIGTERM, then resign
///
/// Tells when this candidate is elected and when it no longer leads, and every change of the leader, whoever it is.
/// "unelected" is told before leadership can end in the store: whoever reads it has stop_within (250 ms) to stop.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord elect nightly --name worker-1 --json --store etcd://localhost:2379")]
pub(crate) struct Elect {
    /// Which election: a name, or a key
    election: String,
    /// What this candidate is called [default: host-pid]
    #[arg(long)]
    name: Option<String>,
    /// How candidates find their leader; the same for all of them
    #[arg(long, value_enum, default_value_t)]
    recipe: RecipeName,
    /// The time to live of its lease: another leads at the latest this long after it has died [default: 10s]
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
}

/// How candidates find their leader.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum RecipeName {
    /// First come, first served
    #[default]
    Sequence,
    /// Whoever is fastest, in no order
    Cas,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Row<'a> {
    Elected {
        election: &'a str,
        name: &'a str,
        token: u64,
        boot_ns: u64,
    },
    Unelected {
        election: &'a str,
        name: &'a str,
        token: u64,
        reason: &'a str,
        boot_ns: u64,
    },
}

// === impl Elect ===

impl Elect {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let key = election_key(&self.election)?;
        let app = App::new(global, App::flag("--ttl", "session.ttl", self.ttl.as_ref()))?;
        let coordinator = app.connect()?;
        let session = Session::open(coordinator.clone(), app.config.session_config())?;
        let name = self.name.clone().unwrap_or_else(default_name);
        let config = ElectionConfig {
            recipe: self.recipe.into(),
            ..app.config.election_config(key, &name)
        };
        let election = Election::new(&session, config);
        let play = Play {
            app: &app,
            election: &election,
            called: &self.election,
            name: &name,
            env: coordinator.env(),
            current: Mutex::default(),
        };
        let result = {
            let mut campaign = pin!(play.campaign());
            let result = tokio::select! {
                biased;
                () = shutdown.requested() => Ok(()),
                () = app.out.closed() => Err(Exit::pipe()),
                failed = waiting_for_store(&app, &session) => failed,
                failed = &mut campaign => failed,
                failed = play.observe() => failed,
            };
            // Told, and its moment taken, while the campaign is still there: dropping it gives leadership up. A reader
            // that stands still does not keep us from that.
            let told = tokio::time::timeout(app.config.stop_within, play.tell_unelected("resigned")).await;
            result.and(told.unwrap_or(Ok(())))
        };
        election.close().await;
        session.close().await.ok();
        coordinator.close().await.ok();
        result
    }
}

async fn waiting_for_store(app: &App, session: &Session) -> Result<(), Exit> {
    waiting::for_the_store(session.coordinator(), &app.config.store).await?;
    std::future::pending().await
}

struct Play<'a> {
    app: &'a App,
    election: &'a Election,
    called: &'a str,
    name: &'a str,
    env: &'a Env,
    /// The leadership that was told, if one is on.
    current: Mutex<Option<Term>>,
}

// === impl Play ===

impl Play<'_> {
    /// Contends for ever, and tells what becomes of it.
    async fn campaign(&self) -> Result<(), Exit> {
        let ended = self
            .election
            .run_while_leader(|term| async move {
                match self.lead(term).await {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(exit) => ControlFlow::Break(exit),
                }
            })
            .await;
        Err(match ended {
            Ok(exit) => exit,
            Err(error) if error.is_closed() => Exit::unavailable(format!(
                "elect {}: no lease could be had within session.backoff.limit",
                self.called
            )),
            Err(error) => error.into(),
        })
    }

    async fn lead(&self, term: Term) -> Result<(), Exit> {
        let row = Row::Elected {
            election: self.called,
            name: self.name,
            token: term.token(),
            boot_ns: nanoseconds(self.env.now()),
        };
        *self.current() = Some(term.clone());
        let words = format!("elected    {} (token {})", Escaped::new(self.name), term.token());
        self.app.out.row(&row, words).await?;
        term.stopped().await;
        self.tell_unelected("no renewal in time").await
    }

    /// Once for each leadership that was told; `why` is for one that has not ended by itself.
    async fn tell_unelected(&self, why: &str) -> Result<(), Exit> {
        let Some(term) = self.current().take() else {
            return Ok(());
        };
        let ended = term.lost().now_or_never();
        let reason = &*ended.map_or(why.to_owned(), |reason| reason.to_string());
        // It ended by the clock even if we stood still and notice it only now.
        let ends = term.stop_at() + self.app.config.stop_within;
        let row = Row::Unelected {
            election: self.called,
            name: self.name,
            token: term.token(),
            reason,
            boot_ns: nanoseconds(self.env.now().min(ends)),
        };
        let words = format!(
            "unelected  {} (token {}): {reason}",
            Escaped::new(self.name),
            term.token()
        );
        self.app.out.row(&row, words).await
    }

    async fn observe(&self) -> Result<(), Exit> {
        let mut observer = self.election.observe();
        while let Some(seen) = observer.changed().await {
            tell_leader(&self.app.out, self.called, &seen, nanoseconds(self.env.now())).await?;
        }
        std::future::pending().await
    }

    fn current(&self) -> MutexGuard<'_, Option<Term>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl RecipeName ===

impl RecipeName {
    pub(super) fn name(self) -> &'static str {
        match self {
            RecipeName::Sequence => "sequence",
            RecipeName::Cas => "cas",
        }
    }
}

impl From<RecipeName> for Recipe {
    fn from(name: RecipeName) -> Recipe {
        match name {
            RecipeName::Sequence => Recipe::Sequence,
            RecipeName::Cas => Recipe::Cas,
        }
    }
}

/// Where the election of this name lies.
pub(crate) fn election_key(name: &str) -> Result<Key, Exit> {
    parse_name("/elections", name).map_err(|problem| Exit::usage(format!("election {name:?}: {problem}")))
}
