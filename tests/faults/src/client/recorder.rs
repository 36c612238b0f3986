use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coord_api::{Entry, Env};

use crate::history::{Held, Line, Op, Outcome, What};

/// Writes lines to the standard output, one at a time, before and after everything that happens.
#[derive(Debug, Clone)]
pub(super) struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    who: String,
    env: Env,
    next: AtomicU64,
}

impl Recorder {
    pub(super) fn new(who: &str) -> Recorder {
        Recorder(Arc::new(Inner {
            who: who.to_owned(),
            env: Env::system(),
            next: AtomicU64::new(0),
        }))
    }

    pub(super) fn who(&self) -> &str {
        &self.0.who
    }

    pub(super) fn now(&self) -> u64 {
        super::nanos(self.0.env.now().since_start())
    }

    pub(super) fn number(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn say(&self, what: What) {
        let line = Line {
            at: self.now(),
            who: self.0.who.clone(),
            what,
        };
        let Ok(mut text) = serde_json::to_string(&line) else {
            return;
        };
        text.push('\n');
        // In one piece. If nobody reads on, nobody is told.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        self.say(What::Note { text: text.into() });
    }

    /// Writes the call down, makes it, and writes down how it ended.
    pub(super) async fn call<T>(&self, op: Op, doing: impl Future<Output = (Outcome, T)>) -> (Outcome, T) {
        let id = self.number();
        self.say(What::Call { id, op });
        let (outcome, output) = doing.await;
        self.say(What::Return {
            id,
            outcome: outcome.clone(),
        });
        (outcome, output)
    }

    /// Writes down every second how much memory this process holds.
    pub(super) async fn memory(self, env: Env) {
        loop {
            if let Some(kb) = resident() {
                self.say(What::Memory { kb });
            }
            env.sleep(Duration::from_secs(1)).await;
        }
    }
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// An entry as histories show it.
pub(super) fn held(entry: &Entry) -> Held {
    Held {
        value: String::from_utf8_lossy(&entry.value).into_owned(),
        version: entry.version.to_string(),
        created: entry.created,
    }
}
