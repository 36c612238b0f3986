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
    /// A create that was sent more than once and succeeded: another copy of it may still be under way, and would bring
    /// the entry back when it is deleted.
    pub(super) stray: Option<Create>,
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
            // In doubt, create: it tells what is there, and puts it there if nothing is.
            let held = self
                .known
                .held
                .clone()
                .filter(|held| held.lease == Some(lease) && !self.known.suspect);
            match held {
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
        // that lease; until then it may be there.
        let mode = CreateMode::Ephemeral(lease);
        self.settle_stray(Some(mode)).await?;
        let pending = self.known.pending.take();
        self.known.suspect |= pending.as_ref().is_some_and(|create| create.mode != mode);
        let again = pending.filter(|create| create.mode == mode);
        let tried_before = again.is_some();
        let create =
            again.unwrap_or_else(|| Create::new(self.coordinator.env(), self.key.clone(), value.clone(), mode));
        match self.coordinator.create(&create).await {
            Ok(entry) => {
                self.known = Known::holding(entry);
                self.known.stray = Some(create).filter(|_| tried_before);
                Ok(None)
            }
            Err(error) => {
                // Whatever became of this try: an earlier one may have happened, or may still.
                let earlier = Some(create).filter(|_| tried_before || error.is_unknown());
                match error.kind() {
                    ErrorKind::AlreadyExists(holder) => {
                        let judged = self.judge((**holder).clone(), lease).await;
                        self.known.stray = earlier;
                        judged
                    }
                    ErrorKind::LeaseFull(_) => {
                        self.known.pending = earlier;
                        self.full(lease).await
                    }
                    ErrorKind::LeaseLost(_) => {
                        self.known.pending = earlier;
                        Ok(Some(Outcome::NoLease))
                    }
                    _ => {
                        self.known.pending = earlier;
                        Err(error)
                    }
                }
            }
        }
    }

    /// What to make of a full lease; `None`: go on. An entry that was merely in doubt may be there, and fills its own
    /// place.
    async fn full(&mut self, lease: LeaseId) -> Result<Option<Outcome>, Error> {
        if self.known.held.as_ref().is_some_and(|held| held.lease == Some(lease)) {
            let found = self.coordinator.get_latest(&self.key).await?;
            if let Some(entry) = found.filter(|entry| self.is_mine(entry) && entry.lease == Some(lease)) {
                let stray = self.known.pending.take();
                self.known = Known::holding(entry);
                self.known.stray = stray;
                return Ok(None);
            }
        }
        Ok(Some(Outcome::Full))
    }

    fn is_mine(&self, entry: &Entry) -> bool {
        Value::decode(&entry.value).is_some_and(|value| self.identity.wrote(&value))
    }

    /// What to make of an entry that is there; `None`: go on.
    async fn judge(&mut self, entry: Entry, lease: LeaseId) -> Result<Option<Outcome>, Error> {
        self.known = Known::default();
        let Some(value) = Value::decode(&entry.value) else {
            let (owner, address) = ("somebody who is no registry".into(), String::new());
            return Ok(Some(Outcome::Taken(Status::Taken { owner, address })));
        };
        let mine = self.identity.wrote(&value);
        if mine && entry.lease == Some(lease) {
            self.known = Known::holding(entry);
            return Ok(None);
        }
        let older = mine || self.newest == 0 || entry.created < self.newest;
        if value.owner != self.identity.owner || !older {
            let (owner, address) = (value.owner, value.address);
            return Ok(Some(Outcome::Taken(Status::Taken { owner, address })));
        }
        match self.coordinator.delete(&self.key, entry.version.into()).await {
            Err(error) if !is_surprise(&error) => {
                self.known.suspect = mine;
                Err(error)
            }
            _ => Ok(None),
        }
    }

    /// Sees to it that no copy of an older create takes effect any more. One under another lease ends with that lease.
    async fn settle_stray(&mut self, mode: Option<CreateMode>) -> Result<(), Error> {
        if let Some(stray) = &self.known.stray {
            if mode.is_none_or(|mode| mode == stray.mode) {
                self.coordinator.abandon(stray).await?;
            }
            self.known.stray = None;
        }
        Ok(())
    }

    async fn remove(&mut self) -> Result<Outcome, Error> {
        self.settle_stray(None).await?;
        if let Some(create) = &self.known.pending {
            self.coordinator.abandon(create).await?;
            self.known.pending = None;
        }
        for _ in 0..TURNS {
            if self.known.suspect {
                let found = self.coordinator.get(&self.key).await?;
                self.known.held = found.filter(|entry| self.is_mine(entry)).map(Held::of);
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

// === impl Known ===

impl Known {
    /// Exactly this.
    fn holding(entry: Entry) -> Known {
        Known {
            held: Some(Held::of(entry)),
            ..Known::default()
        }
    }
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
