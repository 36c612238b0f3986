use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use nix::sys::signal::SigSet;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::output::tell;

/// What becomes the job: for internal use.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// The guardian's process id
    guardian: i32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

// === impl Launch ===

impl Launch {
    /// Asks the kernel to kill this process when the guardian dies, too, and becomes the job. Returns the exit code of a
    /// shell for a command that cannot be run.
    pub(crate) fn run(&self) -> i32 {
        let asked = set_parent_process_death_signal(Some(Signal::KILL));
        // It may have died before we asked.
        if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(self.guardian) {
            return 128 + Signal::KILL.as_raw();
        }
        if let Err(error) = asked {
            tell(format!("no parent-death signal: {error}"));
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return 2;
        };
        let error = Command::new(program).args(arguments).exec();
        // The attempt has made SIGPIPE deadly, as programs expect it: without a reader, the code is to be told all the same.
        let mut pipe = SigSet::empty();
        pipe.add(nix::sys::signal::Signal::SIGPIPE);
        let _ = pipe.thread_block();
        let program = program.to_string_lossy();
        tell(format!(
            "cannot run {program:?}: {error}; check its name and that it is executable"
        ));
        match error.kind() {
            ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}
