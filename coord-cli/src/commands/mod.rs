mod bench;
mod check;
mod completions;
mod conformance;
mod create;
mod delete;
mod elect;
mod get;
mod list;
mod observe;
mod register;
mod services;
mod update;
mod watch;

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::Exit;

/// Each command is a module of its name with its arguments, and `run`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Elect(elect::Elect),
    Observe(observe::Observe),
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
}

// === impl Command ===

impl Command {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self {
            Command::Elect(command) => command.run(global).await,
            Command::Observe(command) => command.run(global).await,
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
        }
    }
}
