use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What the copy that runs tells beside its name, for people: by the wall clock of its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proclaimed {
    /// Since when it runs, in milliseconds since 1970.
    pub(crate) since_ms: u64,
    pub(crate) host: String,
    pub(crate) pid: u32,
}

// === impl Proclaimed ===

impl Proclaimed {
    pub(super) fn now() -> Proclaimed {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Proclaimed {
            since_ms: u64::try_from(since.as_millis()).unwrap_or(0),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
        }
    }

    pub(super) fn text(&self) -> String {
        // Numbers and a string: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a leader's entry says, if it is one of `coord run`.
    pub(crate) fn parse(text: &str) -> Option<Proclaimed> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn since(&self) -> SystemTime {
        // From outside: it may be absurd.
        let since = Duration::from_millis(self.since_ms);
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }
}
