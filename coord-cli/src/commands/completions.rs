use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Cli, Global};
use crate::exit::Exit;
use crate::output::Output;

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord completions bash > ~/.local/share/bash-completion/completions/coord")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

// === impl Completions ===

impl Completions {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut offered(), "coord", &mut script);
        Output::new(global.json).bytes(script).await
    }
}

/// The command without what is hidden, which the generator would offer all the same.
fn offered() -> Command {
    let whole = Cli::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("coord")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(shown.cloned())
}
