use coordkit::Entry;
use serde::Serialize;

use crate::escape::Escaped;

/// An entry as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct EntryRow {
    key: String,
    /// What is no UTF-8 is shown as U+FFFD; `coord get --raw` gives it byte for byte.
    pub(crate) value: String,
    version: String,
    created: u64,
    lease: Option<String>,
}

// === impl EntryRow ===

impl EntryRow {
    pub(crate) fn of(entry: &Entry) -> EntryRow {
        EntryRow {
            key: entry.key.to_string(),
            value: String::from_utf8_lossy(&entry.value).into_owned(),
            version: entry.version.to_string(),
            created: entry.created,
            lease: entry.lease.map(|lease| lease.to_string()),
        }
    }

    /// For people: `/a/b  version 1f.2a  "value"`.
    pub(crate) fn words(&self) -> String {
        let kind = if self.lease.is_some() {
            "ephemeral"
        } else {
            "persistent"
        };
        let EntryRow {
            key, version, created, ..
        } = self;
        format!(
            "{key}  {kind}  created {created}  version {version}  {}",
            Escaped::new(&self.value)
        )
    }
}
