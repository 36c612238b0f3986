use std::sync::Arc;

use bytes::Bytes;

use super::instance::Value;
use super::{Identity, Status};
use crate::{Coordinator, Create, CreateMode, Entry, Error, ErrorKind, Expect, Key, LeaseId, Version};

/// After so many surprises in a row, others get their turn first.
const TURNS: usize = 4;

/// Brings one key to its wanted state. It carries all it needs, so that many run side by side.
pub(super) struct Job {
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) identity: Arc<Identity>,
    pub(super) key: Key,
    pub(super) want: Option<Bytes>,
    /// The live lease to write under.
    pub(super) lease: Option<LeaseId>,
    /// The latest `created` of this incarnation: what its owner wrote since is a newer incarnation's.
    pub(super) newest: u64,
    pub(super) known: Known,
}

/// What is known of a key at the store.
#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    /// The entry as it was written last.
    pub(super) held: Option<Held>,
    /// A create whose outcome is unknown.
    pub(super) pending: Option<Create>,
    /// It may be otherwise by now: look first.
    pub(super) suspect: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) created: u64,
    pub(super) version: Version,
    pub(super) lease: Option<LeaseId>,
    pub(super) value: Bytes,
}

/// How a job ended.
pub(super) struct Done {
    pub(super) key: Key,
    pub(super) lease: Option<LeaseId>,
    pub(super) known: Known,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    /// As wanted.
    Settled,
    /// Somebody else's, which is not ours to touch.
    Taken(Status),
    /// The lease carries no more.
    Full,
    /// The lease is gone, or there is none.
    NoLease,
    /// To be tried again.
    Failed(Error),
    /// Too much is going on with this key: again, later.
    Again,
}

// === impl Job ===

impl Job {
    pub(super) async fn run(mut self) -> Done {
        let outcome = match self.want.clone() {
            Some(value) => self.put(&value).await,
            None => self.remove().await,
        };
        Done {
            outcome: outcome.unwrap_or_else(Outcome::Failed),
            key: self.key,
            lease: self.lease,
            known: self.known,
        }
    }

    async fn put(&mut self, value: &Bytes) -> Result<Outcome, Error> {
        let Some(lease) = self.lease else {
            return Ok(Outcome::NoLease);
        };
        for _ in 0..TURNS {
            if self.known.suspect {
                let found = self.coordinator.get(&self.key).await?;
                self.known.suspect = false;
                self.known.held = None;
                if let Some(entry) = found
                    && let Some(outcome) = self.judge(entry, lease).await?
                {
                    return Ok(outcome);
                }
                continue;
            }
            match self.known.held.clone().filter(|held| held.lease == Some(lease)) {
                Some(held) if held.value == value => return Ok(Outcome::Settled),
                Some(held) => self.write(value, held.version).await?,
                None => {
                    if let Some(outcome) = self.create(value, lease).await? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(Outcome::Again)
    }

    async fn write(&mut self, value: &Bytes, version: Version) -> Result<(), Error> {
        match self.coordinator.update(&self.key, value.clone(), version.into()).await {
            Ok(entry) => self.known.held = Some(Held::of(entry)),
            Err(error) => {
                self.known.suspect = true;
                if error.is_unknown() || !is_surprise(&error) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn create(&mut self, value: &Bytes, lease: LeaseId) -> Result<Option<Outcome>, Error> {
        // The same create again after an unknown outcome, so that it happens once. One under an older lease ends with
        // that lease.
        let mode = CreateMode::Ephemeral(lease);
        let pending = self.known.pending.take().filter(|create| create.mode == mode);
        let create =
            pending.unwrap_or_else(|| Create::new(self.coordinator.env(), self.key.clone(), value.clone(), mode));
        match self.coordinator.create(&create).await {
            Ok(entry) => {
                self.known.held = Some(Held::of(entry));
                Ok(None)
            }
            Err(error) => match error.kind() {
                ErrorKind::AlreadyExists(holder) => self.judge((**holder).clone(), lease).await,
                ErrorKind::LeaseFull(_) => Ok(Some(Outcome::Full)),
                ErrorKind::LeaseLost(_) => Ok(Some(Outcome::NoLease)),
                _ => {
                    if error.is_unknown() {
                        self.known.pending = Some(create);
                    }
                    Err(error)
                }
            },
        }
    }

    /// What to make of an entry that is there; `None`: go on.
    async fn judge(&mut self, entry: Entry, lease: LeaseId) -> Result<Option<Outcome>, Error> {
        let Some(value) = Value::decode(&entry.value) else {
            let (owner, address) = ("somebody who is no registry".into(), String::new());
            return Ok(Some(Outcome::Taken(Status::Taken { owner, address })));
        };
        let mine = self.identity.wrote(&value);
        if mine && entry.lease == Some(lease) {
            self.known.held = Some(Held::of(entry));
            return Ok(None);
        }
        let older = mine || self.newest == 0 || entry.created < self.newest;
        if value.owner != self.identity.owner || !older {
            let (owner, address) = (value.owner, value.address);
            return Ok(Some(Outcome::Taken(Status::Taken { owner, address })));
        }
        match self.coordinator.delete(&self.key, entry.version.into()).await {
            Err(error) if !is_surprise(&error) => Err(error),
            _ => Ok(None),
        }
    }

    async fn remove(&mut self) -> Result<Outcome, Error> {
        if let Some(create) = &self.known.pending {
            self.coordinator.abandon(create).await?;
            self.known.pending = None;
        }
        for _ in 0..TURNS {
            if self.known.suspect {
                let found = self.coordinator.get(&self.key).await?;
                let mine = |entry: &Entry| Value::decode(&entry.value).is_some_and(|value| self.identity.wrote(&value));
                self.known.held = found.filter(mine).map(Held::of);
                self.known.suspect = false;
            }
            let Some(held) = &self.known.held else {
                return Ok(Outcome::Settled);
            };
            match self.coordinator.delete(&self.key, Expect::Version(held.version)).await {
                Ok(()) => self.known.held = None,
                Err(error) => {
                    self.known.suspect = true;
                    if !is_surprise(&error) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(Outcome::Again)
    }
}

/// Whether the entry was merely another than thought: look again.
fn is_surprise(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::VersionMismatch(_))
}

// === impl Held ===

impl Held {
    pub(super) fn of(entry: Entry) -> Held {
        Held {
            created: entry.created,
            version: entry.version,
            lease: entry.lease,
            value: entry.value,
        }
    }
}
