mod demo;
mod elect;
mod get;
mod leave;
mod members;
mod node;
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
    Demo(demo::Demo),
    Node(Box<node::Node>),
    Members(members::Members),
    Leave(leave::Leave),
    Down(leave::Down),
}

// === impl Command ===

impl Command {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self {
            Command::Elect(command) => command.run(global).await,
            Command::Observe(command) => command.run(global).await,
            Command::Get(command) => command.run(global).await,
            Command::Demo(command) => command.run(global).await,
            Command::Node(command) => command.run(global).await,
            Command::Members(command) => command.run(global).await,
            Command::Leave(command) => command.run(global).await,
            Command::Down(command) => command.run(global).await,
        }
    }
}
