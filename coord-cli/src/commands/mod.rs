mod checkpoint;
mod elect;
mod evict;
mod get;
mod observe;
mod run;
mod status;

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::Exit;
use crate::guardian::{Guard, Launch};

/// Each command is a module of its name with its arguments, and `run`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Elect(elect::Elect),
    Observe(observe::Observe),
    Run(run::Run),
    Status(status::Status),
    Evict(evict::Evict),
    Checkpoint(checkpoint::Checkpoint),
    Get(get::Get),
    #[command(name = "__guardian", hide = true)]
    Guardian(Guard),
    #[command(name = "__launch", hide = true)]
    Launch(Launch),
}

// === impl Command ===

impl Command {
    /// What has to be alone in its process, without the threads of a runtime; its exit code.
    pub(crate) fn alone(self) -> Result<i32, Command> {
        match self {
            Command::Guardian(guard) => Ok(guard.run()),
            Command::Launch(launch) => Ok(launch.run()),
            other => Err(other),
        }
    }

    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self {
            Command::Elect(command) => command.run(global).await,
            Command::Observe(command) => command.run(global).await,
            Command::Run(command) => command.run(global).await,
            Command::Status(command) => command.run(global).await,
            Command::Evict(command) => command.run(global).await,
            Command::Checkpoint(command) => command.run(global).await,
            Command::Get(command) => command.run(global).await,
            // They have no other threads: see `alone`.
            Command::Guardian(_) | Command::Launch(_) => Ok(()),
        }
    }
}
