mod elect;
mod get;
mod observe;

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::Exit;

/// Each command is a module of its name with its arguments, and `run`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Elect(elect::Elect),
    Observe(observe::Observe),
    Get(get::Get),
}

// === impl Command ===

impl Command {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self {
            Command::Elect(command) => command.run(global).await,
            Command::Observe(command) => command.run(global).await,
            Command::Get(command) => command.run(global).await,
        }
    }
}
