use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Entry, Env};

/// What a candidate's entry says, as JSON, so that `etcdctl` and `zkCli` can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) name: String,
    /// Random, new for each campaign: two of the same name on two machines are two.
    pub(super) incarnation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proclaimed: Option<String>,
}

/// Who leads, as its entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The name of the candidate; the whole value, if something else than a candidate of ours wrote it.
    pub name: String,
    /// Which campaign of that name it is.
    pub incarnation: String,
    /// The fencing token.
    pub token: u64,
    /// What it has [proclaimed](crate::Leadership::proclaim) last.
    pub proclaimed: Option<String>,
}

impl Identity {
    pub(super) fn new(env: &Env, name: &str) -> Identity {
        Identity {
            name: name.to_owned(),
            incarnation: format!("{:016x}", env.random_u64()),
            proclaimed: None,
        }
    }

    pub(super) fn value(&self) -> Bytes {
        // Strings alone: this cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Whether the entry says that it is this candidate's.
    pub(super) fn owns(&self, entry: &Entry) -> bool {
        serde_json::from_slice::<Identity>(&entry.value).is_ok_and(|found| found.incarnation == self.incarnation)
    }
}

impl Leader {
    /// Whom a candidate's entry stands for; the one created first leads.
    pub fn of(entry: &Entry) -> Leader {
        let identity = serde_json::from_slice::<Identity>(&entry.value).unwrap_or_else(|_| Identity {
            name: String::from_utf8_lossy(&entry.value).into_owned(),
            incarnation: String::new(),
            proclaimed: None,
        });
        Leader {
            name: identity.name,
            incarnation: identity.incarnation,
            token: entry.created,
            proclaimed: identity.proclaimed,
        }
    }
}
