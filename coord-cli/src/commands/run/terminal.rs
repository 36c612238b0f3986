use std::fs::File;

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that we were started from, and whether the job has it.
///
/// The job gets it when it first reads from it or changes it (the kernel stops it for that, as it is in a group of its own),
/// not before: in `coord run … | less` the terminal is the other's.
#[derive(Debug)]
pub(super) struct Terminal {
    /// None: there is none, as under a service manager.
    file: Option<File>,
    lent: bool,
}

// === impl Terminal ===

impl Terminal {
    pub(super) fn open() -> Terminal {
        Terminal {
            file: File::options().read(true).write(true).open("/dev/tty").ok(),
            lent: false,
        }
    }

    /// Makes the job the one that reads and is interrupted; false if we may not use the terminal ourselves.
    pub(super) fn lend(&mut self, job: Pid) -> bool {
        let Some(terminal) = &self.file else {
            return false;
        };
        match tcgetpgrp(terminal) {
            Ok(foreground) if foreground == getpgrp() => {
                self.lent = tcsetpgrp(terminal, job).is_ok();
                self.lent
            }
            // It was faster than we: stopped, given the terminal, and not yet continued.
            Ok(foreground) => foreground == job,
            Err(_) => false,
        }
    }

    /// Whoever comes after us gets it as it was.
    pub(super) fn take_back(&mut self) {
        let (true, Some(terminal)) = (std::mem::take(&mut self.lent), &self.file) else {
            return;
        };
        // Asked from the background, the kernel stops whoever does not block this signal.
        let mut block = nix::sys::signal::SigSet::empty();
        block.add(nix::sys::signal::Signal::SIGTTOU);
        if block.thread_block().is_ok() {
            // If that fails, the shell takes it.
            let _ = tcsetpgrp(terminal, getpgrp());
            let _ = block.thread_unblock();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
