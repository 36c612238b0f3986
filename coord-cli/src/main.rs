//! The `coord` command. Each command is a module in `commands`; what they share is [`app::App`].

mod app;
mod cli;
mod commands;
mod entry_row;
mod escape;
mod exit;
mod guardian;
mod http;
mod output;
mod progress;
mod prometheus;
mod shutdown;
mod value_arg;
mod waiting;

use clap::Parser;

use crate::cli::Cli;
use crate::exit::Exit;

fn main() {
    let Cli { global, command } = Cli::parse();
    if let Some(code) = command.alone() {
        std::process::exit(code);
    }
    // What the demo does to its nodes on purpose is on its timeline already.
    global.start_logging(matches!(command, commands::Command::Demo(_)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = match &runtime {
        Ok(runtime) => runtime.block_on(command.run(&global)),
        Err(error) => Err(Exit::failed(format!("no threads can be started: {error}"))),
    };
    let code = result.map_or_else(|exit| exit.report(), |()| 0);
    // Without dropping the runtime: a write to a reader that stands still must not keep us, and a lease that was left to
    // end by its ttl must not be closed.
    std::process::exit(code)
}
