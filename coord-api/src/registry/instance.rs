use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Entry;

/// What to register: one instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Which service; one segment of a [`Key`](crate::Key).
    pub service: String,
    /// Which instance of it; one segment, too.
    pub id: String,
    /// Where it can be reached.
    pub address: String,
    /// Whatever else readers should know.
    pub metadata: BTreeMap<String, String>,
}

/// An instance of a service, as readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Which instance.
    pub id: String,
    /// Where it can be reached.
    pub address: String,
    /// Whatever else it says about itself.
    pub metadata: BTreeMap<String, String>,
    /// Who registered it.
    pub owner: String,
    /// Which life of the owner that was.
    pub incarnation: String,
    /// When, in the store's own counting: another number is another registration.
    pub created: u64,
}

/// The value of an entry: JSON, so that `etcdctl` and `zkCli` show it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Value {
    pub(super) address: String,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) owner: String,
    pub(super) incarnation: String,
}

// === impl Registration ===

impl Registration {
    /// An instance without metadata.
    pub fn new(service: impl Into<String>, id: impl Into<String>, address: impl Into<String>) -> Registration {
        Registration {
            service: service.into(),
            id: id.into(),
            address: address.into(),
            metadata: BTreeMap::new(),
        }
    }

    /// With one more fact for readers.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Registration {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

// === impl Instance ===

impl Instance {
    /// `None` for an entry that no registry wrote.
    pub(super) fn of(entry: &Entry) -> Option<Instance> {
        let value = Value::decode(&entry.value)?;
        Some(Instance {
            id: entry.key.name().to_owned(),
            address: value.address,
            metadata: value.metadata,
            owner: value.owner,
            incarnation: value.incarnation,
            created: entry.created,
        })
    }
}

// === impl Value ===

impl Value {
    pub(super) fn encode(&self) -> Bytes {
        // Strings and maps of strings: this cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    pub(super) fn decode(bytes: &Bytes) -> Option<Value> {
        serde_json::from_slice(bytes).ok()
    }
}
