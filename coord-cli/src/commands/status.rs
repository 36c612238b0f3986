use clap::Args;
use coordkit::{CheckpointStore, CoordinatorCheckpoints, Leader};
use serde::Serialize;

use super::run::{Proclaimed, checkpoint_exit, job_keys};
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;

/// Tell who runs a job, since when, and who waits
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord status nightly --store etcd://localhost:2379")]
pub(crate) struct Status {
    /// Which job: a name, or a key
    job: String,
    /// Of which run the checkpoint is to be shown, for one that is done --once
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    job: &'a str,
    running: Option<Running<'a>>,
    waiting: Vec<&'a str>,
    checkpoint: Checkpoint<'a>,
}

#[derive(Debug, Serialize)]
struct Running<'a> {
    name: &'a str,
    token: u64,
    /// By the wall clock of its machine.
    since: Option<String>,
    since_ms: Option<u64>,
    host: Option<&'a str>,
    pid: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Checkpoint<'a> {
    /// The highest token that has claimed it.
    token: u64,
    /// The token of who wrote it.
    writer: u64,
    step: Option<&'a str>,
    done: bool,
}

// === impl Status ===

impl Status {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let keys = job_keys(&self.job, self.run_id.as_deref())?;
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        // A look that is as fresh as can be; lists are no older than it.
        let checkpoints = CoordinatorCheckpoints::new(coordinator.clone(), keys.clone());
        let checkpoint = checkpoints.load().await.map_err(checkpoint_exit)?;
        let mut entries = coordinator.children(&keys.candidates).await?;
        coordinator.close().await.ok();
        entries.retain(|entry| entry.key.is_sequential());
        entries.sort_by_key(|entry| entry.created);
        let leaders: Vec<Leader> = entries.iter().map(Leader::of).collect();
        let told = leaders
            .first()
            .and_then(|leader| Proclaimed::parse(leader.proclaimed.as_deref()?));
        let row = Row {
            job: &self.job,
            running: leaders.first().map(|leader| Running {
                name: &leader.name,
                token: leader.token,
                since: told
                    .as_ref()
                    .map(|told| humantime::format_rfc3339_seconds(told.since()).to_string()),
                since_ms: told.as_ref().map(|told| told.since_ms),
                host: told.as_ref().map(|told| told.host.as_str()),
                pid: told.as_ref().map(|told| told.pid),
            }),
            waiting: leaders.iter().skip(1).map(|leader| leader.name.as_str()).collect(),
            checkpoint: Checkpoint {
                token: checkpoint.token,
                writer: checkpoint.writer,
                step: checkpoint.progress.step(),
                done: checkpoint.progress.is_done(),
            },
        };
        app.out.row(&row, row.words()).await
    }
}

// === impl Row ===

impl Row<'_> {
    fn words(&self) -> String {
        let mut lines = vec![match &self.running {
            None => "running     nobody".to_owned(),
            Some(running) => {
                let mut line = format!("running     {} (token {})", Escaped::new(running.name), running.token);
                if let (Some(since), Some(host), Some(pid)) = (&running.since, running.host, running.pid) {
                    line += &format!(" since {since}, process {pid} on {}", Escaped::new(host));
                }
                line
            }
        }];
        lines.extend(
            self.waiting
                .iter()
                .map(|name| format!("waiting     {}", Escaped::new(name))),
        );
        let Checkpoint {
            token,
            writer,
            step,
            done,
        } = &self.checkpoint;
        lines.push(match (step, done) {
            (_, true) => format!("checkpoint  done, marked by token {writer}"),
            (Some(step), _) => format!("checkpoint  at step {}, written by token {writer}", Escaped::new(step)),
            (None, _) if *token > 0 => format!("checkpoint  none, claimed by token {token}"),
            (None, _) => "checkpoint  none".to_owned(),
        });
        lines.join("\n")
    }
}
