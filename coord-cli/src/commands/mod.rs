mod bench;
mod check;
mod checkpoint;
mod completions;
mod conformance;
mod create;
mod delete;
mod demo;
mod elect;
mod evict;
mod get;
mod leave;
mod list;
mod members;
mod node;
mod observe;
mod register;
mod run;
mod services;
mod status;
mod update;
mod watch;

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
    Register(register::Register),
    Services(services::Services),
    Create(create::Create),
    Get(get::Get),
    Update(update::Update),
    List(list::List),
    Watch(watch::Watch),
    Delete(delete::Delete),
    Check(check::Check),
    Conformance(conformance::Conformance),
    Bench(bench::Bench),
    Completions(completions::Completions),
    #[command(name = "__guardian", hide = true)]
    Guardian(Guard),
    #[command(name = "__launch", hide = true)]
    Launch(Launch),
    Demo(demo::Demo),
    Node(Box<node::Node>),
    Members(members::Members),
    Leave(leave::Leave),
    Down(leave::Down),
}

// === impl Command ===

impl Command {
    /// What has to be alone in its process, without the threads of a runtime; its exit code.
    pub(crate) fn alone(&self) -> Option<i32> {
        match self {
            Command::Guardian(guard) => Some(guard.run()),
            Command::Launch(launch) => Some(launch.run()),
            _ => None,
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
            Command::Register(command) => command.run(global).await,
            Command::Services(command) => command.run(global).await,
            Command::Get(command) => command.run(global).await,
            Command::Create(command) => command.run(global).await,
            Command::Update(command) => command.run(global).await,
            Command::Delete(command) => command.run(global).await,
            Command::List(command) => command.run(global).await,
            Command::Watch(command) => command.run(global).await,
            Command::Check(command) => command.run(global).await,
            Command::Conformance(command) => command.run(global).await,
            Command::Bench(command) => command.run(global).await,
            Command::Completions(command) => command.run(global).await,
            // They have no other threads: see `alone`.
            Command::Guardian(_) | Command::Launch(_) => Ok(()),
            Command::Demo(command) => command.run(global).await,
            Command::Node(command) => command.run(global).await,
            Command::Members(command) => command.run(global).await,
            Command::Leave(command) => command.run(global).await,
            Command::Down(command) => command.run(global).await,
        }
    }
}
