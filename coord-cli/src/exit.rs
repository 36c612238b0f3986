use std::fmt;

use coordkit::{Error, ErrorKind};

use crate::escape::Escaped;

/// How a command ends when it does not end well: the exit code, and what to tell on standard error.
#[derive(Debug)]
pub(crate) struct Exit {
    code: i32,
    message: Option<String>,
}

/// 128 and the number of SIGPIPE.
const PIPE: i32 = 128 + 13;

// === impl Exit ===

impl Exit {
    /// 1: it was tried, and the message says why it failed.
    pub(crate) fn failed(message: impl fmt::Display) -> Exit {
        Exit::new(1, message)
    }

    /// 2: usage or configuration.
    pub(crate) fn usage(message: impl fmt::Display) -> Exit {
        Exit::new(2, message)
    }

    /// 69: the store cannot be reached.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Exit {
        Exit::new(69, message)
    }

    /// 75: not acquired in time.
    pub(crate) fn not_acquired(message: impl fmt::Display) -> Exit {
        Exit::new(75, message)
    }

    /// 76: leadership lost.
    pub(crate) fn leadership_lost(message: impl fmt::Display) -> Exit {
        Exit::new(76, message)
    }

    /// 77: refused by a newer token.
    pub(crate) fn superseded(message: impl fmt::Display) -> Exit {
        Exit::new(77, message)
    }

    /// Exactly this code, and not a word: it was said already, or is another's to say.
    pub(crate) fn silent(code: i32) -> Exit {
        Exit { code, message: None }
    }

    /// Nobody reads standard output any more: as if SIGPIPE had ended us, without a word.
    pub(crate) fn pipe() -> Exit {
        Exit::silent(PIPE)
    }

    /// Standard output failed: its reader has gone, or the disk is full.
    pub(crate) fn output(error: &std::io::Error) -> Exit {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Exit::pipe(),
            _ => Exit::failed(format!("standard output: {error}")),
        }
    }

    fn new(code: i32, message: impl fmt::Display) -> Exit {
        Exit {
            code,
            message: Some(message.to_string()),
        }
    }

    /// The code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// Tells standard error; gives the code.
    pub(crate) fn report(&self) -> i32 {
        if let Some(message) = &self.message {
            use std::io::Write;
            // Whoever closed standard error does not want to know.
            let _ = writeln!(std::io::stderr(), "coord: {}", Escaped::lines(message));
        }
        self.code
    }
}

impl From<Error> for Exit {
    fn from(error: Error) -> Exit {
        match error.kind() {
            ErrorKind::InvalidConfig(what) => Exit::usage(what),
            ErrorKind::InvalidKey(_)
            | ErrorKind::ValueTooLarge { .. }
            | ErrorKind::InvalidTtl { .. }
            | ErrorKind::Unauthenticated(_) => Exit::usage(error),
            _ if error.is_transient() => Exit::unavailable(error),
            _ => Exit::failed(error),
        }
    }
}
