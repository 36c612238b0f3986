use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::escape::is_unsafe;
use crate::exit::Exit;

/// Standard output: JSON lines or words for people, each flushed at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    terminal: bool,
}

// === impl Output ===

impl Output {
    pub(crate) fn new(json: bool) -> Output {
        Output {
            json,
            terminal: std::io::stdout().is_terminal(),
        }
    }

    /// Whether JSON is wanted.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether colours and tables are for somebody's eyes.
    #[allow(dead_code, reason = "for tables")]
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal && !self.json
    }

    /// One line, out at once: the row as JSON, or what to tell people. The words must be escaped already
    /// (see [`Escaped`](crate::escape::Escaped)).
    pub(crate) async fn row(&self, row: &impl Serialize, words: impl Display) -> Result<(), Exit> {
        let mut line = if self.json {
            let text = serde_json::to_string(row).map_err(|error| Exit::failed(format!("no JSON: {error}")))?;
            safe_json(&text)
        } else {
            words.to_string()
        };
        line.push('\n');
        self.bytes(line.into_bytes()).await
    }

    /// Exactly these bytes, out at once. In a thread of its own: a reader that stands still stops no renewal.
    pub(crate) async fn bytes(&self, bytes: Vec<u8>) -> Result<(), Exit> {
        let written = tokio::task::spawn_blocking(move || {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&bytes)?;
            stdout.flush()
        });
        match written.await {
            Ok(result) => result.map_err(|error| Exit::output(&error)),
            Err(error) => Err(Exit::failed(format!("standard output: {error}"))),
        }
    }

    /// Resolves when whoever read standard output has gone (a pipe's other end is closed).
    pub(crate) async fn closed(&self) {
        let (sender, closed) = tokio::sync::oneshot::channel();
        // Not one of the runtime's threads: it waits as long as the process lives.
        let waiting = std::thread::Builder::new().spawn(move || {
            use rustix::event::{PollFd, PollFlags, poll};
            let stdout = std::io::stdout();
            // Errors are told without asking for them, and nothing else is asked for.
            let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
            while matches!(poll(&mut fds, None), Err(rustix::io::Errno::INTR)) {}
            if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                let _ = sender.send(());
            }
        });
        if waiting.is_err() || closed.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// One line on standard error. Nobody has to read it: where `eprintln!` would panic, this goes on.
pub(crate) fn tell(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "coord: {what}");
}

/// JSON leaves DEL, C1 and direction marks as they are; terminals should not see them.
fn safe_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_without_control_characters() {
        let text = "\u{1b}[31m\u{9b}\u{7f}\u{202e}ü\n";
        let safe = safe_json(&serde_json::to_string(text).unwrap());
        assert!(!safe.chars().any(is_unsafe), "{safe:?}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }
}
