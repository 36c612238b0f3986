use std::io::Read;

use clap::{Args, Subcommand};
use coordkit::{CheckpointStore, CoordinatorCheckpoints, Progress};
use serde::Serialize;

use super::run::{checkpoint_exit, job_keys};
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;

/// Read and write how far a job has come, fenced by its token
///
/// For use in a job that `coord run` runs: JOB, token, run and store come from its environment (COORD_JOB, COORD_TOKEN,
/// COORD_RUN_ID, COORD_STORE, COORD_CONFIG). Whoever comes with an older token than the one that has claimed the
/// checkpoint, or with one that the store cannot have issued, is refused: exit 77.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Checkpoint {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLE: &str = "\
Example, in a job:
  case $(coord checkpoint load --step) in
    '')      collect | coord checkpoint save --step publish ;;
  esac
  coord checkpoint load | publish
  coord checkpoint clear";

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the state to standard output; with a token, claim the checkpoint first
    #[command(after_help = "Example:\n  coord checkpoint load nightly --store etcd://localhost:2379")]
    Load(Load),
    /// Keep standard input as the state from which STEP starts
    #[command(after_help = "Example, in a job:\n  echo 42 | coord checkpoint save --step publish")]
    Save(Save),
    /// Forget step and state; the token stays
    #[command(after_help = "Example, in a job:\n  coord checkpoint clear")]
    Clear(Which),
}

#[derive(Debug, Args)]
struct Load {
    #[command(flatten)]
    which: Which,
    /// Write the name of the step to be run next instead; nothing if it is the first
    #[arg(long, conflicts_with = "json")]
    step: bool,
}

#[derive(Debug, Args)]
struct Save {
    #[command(flatten)]
    which: Which,
    /// The step to be run next
    #[arg(long)]
    step: String,
}

/// Whose checkpoint, and who asks.
#[derive(Debug, Args)]
struct Which {
    /// Which job: a name, or a key [env: COORD_JOB]
    job: Option<String>,
    /// The fencing token of who asks [env: COORD_TOKEN]
    #[arg(long)]
    token: Option<String>,
    /// Which run, for one that is done --once [env: COORD_RUN_ID]
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    job: &'a str,
    /// The step to be run next; null: the first.
    step: Option<&'a str>,
    /// What is no UTF-8 is shown as U+FFFD.
    state: Option<String>,
    done: bool,
    token: u64,
    writer: u64,
}

/// What is needed for all of them.
struct Ready {
    app: App,
    job: String,
    token: Option<u64>,
    checkpoints: CoordinatorCheckpoints,
    coordinator: std::sync::Arc<dyn coordkit::Coordinator>,
}

// === impl Checkpoint ===

impl Checkpoint {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self.action {
            Action::Load(Load { which, step }) => load(which.ready(global)?, step).await,
            Action::Save(Save { which, step }) => {
                let ready = which.ready(global)?;
                let limit = ready.coordinator.capabilities().max_value;
                let state = tokio::task::spawn_blocking(move || read_state(limit)).await;
                let state = state.map_err(|error| Exit::failed(format!("standard input: {error}")))??;
                save(
                    ready,
                    Progress::Next {
                        step,
                        state: state.into(),
                    },
                )
                .await
            }
            Action::Clear(which) => save(which.ready(global)?, Progress::Start).await,
        }
    }
}

async fn load(ready: Ready, step_alone: bool) -> Result<(), Exit> {
    let Ready { app, checkpoints, .. } = &ready;
    let found = match ready.token {
        Some(token) => checkpoints.claim(token).await,
        None => checkpoints.load().await,
    };
    ready.coordinator.close().await.ok();
    let found = found.map_err(checkpoint_exit)?;
    let step = found.progress.step();
    if app.out.is_json() {
        let row = Row {
            job: &ready.job,
            step,
            state: step.map(|_| String::from_utf8_lossy(&found.progress.state()).into_owned()),
            done: found.progress.is_done(),
            token: found.token,
            writer: found.writer,
        };
        return app.out.row(&row, "").await;
    }
    match step {
        Some(step) if step_alone => app.out.row(&step, Escaped::new(step)).await,
        None if step_alone => Ok(()),
        // Byte for byte, also on a terminal: it is the job's own.
        _ => app.out.bytes(found.progress.state().to_vec()).await,
    }
}

async fn save(ready: Ready, progress: Progress) -> Result<(), Exit> {
    let Some(token) = ready.token else {
        return Err(Exit::usage(
            "no token: give it by --token or COORD_TOKEN; `coord status` tells which has claimed the checkpoint",
        ));
    };
    let saved = ready.checkpoints.save(token, progress).await;
    ready.coordinator.close().await.ok();
    saved.map_err(checkpoint_exit)
}

/// All of standard input, or an error if it is more than the store takes.
fn read_state(limit: usize) -> Result<Vec<u8>, Exit> {
    let mut state = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    let read = std::io::stdin()
        .lock()
        .take(most.saturating_add(1))
        .read_to_end(&mut state);
    read.map_err(|error| Exit::failed(format!("standard input: {error}")))?;
    match state.len() > limit {
        true => Err(Exit::usage(format!(
            "standard input has more than the {limit} bytes that a state may have; keep it elsewhere, and save where it is"
        ))),
        false => Ok(state),
    }
}

// === impl Which ===

impl Which {
    fn ready(self, global: &Global) -> Result<Ready, Exit> {
        // What is not UTF-8 is refused below, not passed over: without its token, nobody would claim.
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        let job = self.job.or_else(|| variable("COORD_JOB"));
        let job = job.ok_or_else(|| Exit::usage("no job: name it, or set COORD_JOB"))?;
        let token = match self.token.or_else(|| variable("COORD_TOKEN")) {
            Some(text) => Some(parse_token(&text)?),
            None => None,
        };
        let run = self.run_id.or_else(|| variable("COORD_RUN_ID"));
        let keys = job_keys(&job, run.as_deref())?;
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        Ok(Ready {
            app,
            job,
            token,
            checkpoints: CoordinatorCheckpoints::new(coordinator.clone(), keys),
            coordinator,
        })
    }
}

fn parse_token(text: &str) -> Result<u64, Exit> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        Exit::usage(format!(
            "{shown:?} is no token: a token is the number that a leader gets, as in COORD_TOKEN"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_no_token() {
        assert_eq!(parse_token("17").unwrap(), 17);
        for nonsense in ["", "-1", "1.5", "0x10", "token", "18446744073709551616", " 1"] {
            assert_eq!(parse_token(nonsense).unwrap_err().code(), 2, "{nonsense:?}");
        }
    }
}
