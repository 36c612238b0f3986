use std::io::{IsTerminal, Write};

/// A bar on standard error, if that is a terminal.
pub(crate) struct Progress {
    all: usize,
    shown: bool,
}

const WIDTH: usize = 40;

// === impl Progress ===

impl Progress {
    /// None of `all` is done. `wanted`: false for output that no person reads.
    pub(crate) fn start(all: usize, wanted: bool) -> Progress {
        let mut progress = Progress {
            all: all.max(1),
            shown: wanted && std::io::stderr().is_terminal(),
        };
        progress.show(0);
        progress
    }

    /// So many are done.
    pub(crate) fn show(&mut self, done: usize) {
        if self.shown {
            let full = WIDTH * done.min(self.all) / self.all;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
            let _ = write!(std::io::stderr(), "\r{bar} {done}/{}", self.all);
        }
    }

    /// Makes room for a line of output.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
