use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Parser};
use tracing_subscriber::EnvFilter;

use crate::commands::Command;

/// Singleton jobs, elections and a registry over etcd or ZooKeeper.
///
/// The store is a URL: etcd://localhost:2379, zk://localhost:2181, several servers separated by commas, a prefix after
/// them (etcd://h1:2379,h2:2379/my-app), etcds:// and zks:// for TLS, mem:// for trying
/// things out in the memory of one process. Flags override
/// environment variables (COORD_STORE, COORD_USER, COORD_PASSWORD, COORD_SESSION_TTL, …), and these the file.
#[derive(Debug, Parser)]
#[command(name = "coord", version, max_term_width = 110, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The store's URL [env: COORD_STORE]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// A TOML file with the store and further settings [env: COORD_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON object per line on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// More on standard error: -v what is done, -vv everything [env: COORD_LOG, for example coord_api=debug]
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it failed, and standard error says why; 2 usage or configuration; 69 the store cannot be reached; \
75 not acquired in time; 76 leadership lost; 77 refused by a newer token; 128+n ended by signal n.";

// === impl Global ===

impl Global {
    pub(crate) fn start_logging(&self, quiet: bool) {
        let default = match self.verbose {
            0 if quiet => "error",
            // That ZooKeeper is open to everybody is for `coord check` to say, not for each command.
            0 => "warn,coord_zk::coordinator=error",
            1 => "info",
            _ => "debug",
        };
        let filter = match std::env::var("COORD_LOG") {
            Ok(directives) if !directives.is_empty() => EnvFilter::new(directives),
            _ => EnvFilter::new(default),
        };
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            // It would tell them by `eprintln!`, which panics when nobody reads standard error any more.
            .log_internal_errors(false)
            .init();
    }
}
