use bytes::Bytes;

use super::claim::Claim;
use super::identity::Identity;
use super::own::OwnWatch;
use super::pace::Pace;
use super::release::{Trace, release};
use super::{Term, Unelected};
use crate::{Create, Error, ErrorKind, Expect, Instant, Operation, Result, Task};

/// The right to lead, as long as [`is_valid`](Leadership::is_valid) says so. Dropping it resigns, in the background.
#[derive(Debug)]
#[must_use = "dropping it resigns"]
pub struct Leadership {
    term: Term,
    identity: Identity,
    /// Its create, if a copy of the request may still arrive.
    create: Option<Create>,
    released: bool,
    _watcher: Task,
}

impl Leadership {
    pub(super) fn begin(claim: Claim, own: OwnWatch) -> Result<Leadership> {
        let (shared, lease, identity, trace) = claim.take()?;
        let Trace {
            entry: Some(entry),
            create,
        } = trace
        else {
            return Err(shared.closed_error());
        };
        let env = shared.env().clone();
        let term = Term::begin(shared, lease, entry);
        Ok(Leadership {
            _watcher: env.spawn(term.clone().watch_over(own)),
            term,
            identity,
            create,
            released: false,
        })
    }

    /// What the work needs of it.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// See [`Term::token`].
    pub fn token(&self) -> u64 {
        self.term.token()
    }

    /// See [`Term::is_valid`].
    pub fn is_valid(&self) -> bool {
        self.term.is_valid()
    }

    /// See [`Term::valid_until`].
    pub fn valid_until(&self) -> Instant {
        self.term.valid_until()
    }

    /// See [`Term::stop_at`].
    pub fn stop_at(&self) -> Instant {
        self.term.stop_at()
    }

    /// See [`Term::lost`].
    pub async fn lost(&self) -> Unelected {
        self.term.lost().await
    }

    /// Changes what [observers](crate::Observer) see beside the name.
    ///
    /// Ends with an error if leadership has ended, or ends before the store has taken it; no later than that.
    pub async fn proclaim(&mut self, text: impl Into<String>) -> Result<()> {
        self.identity.proclaimed = Some(text.into());
        let (value, shared) = (self.identity.value(), self.term.0.shared.clone());
        let (mut pace, mut doubt) = (Pace::new(), false);
        loop {
            let entry = self.term.entry();
            if !self.is_valid() {
                let lost = ErrorKind::LeaseLost(self.term.0.lease.lease);
                let class = if doubt { Error::unknown } else { Error::definite };
                return Err(class(Operation::Update, Some(&entry.key), lost));
            }
            let expected = Expect::Version(entry.version);
            let answer = tokio::select! {
                biased;
                answer = shared.coordinator.update(&entry.key, value.clone(), expected) => answer,
                _ = self.lost() => {
                    doubt = true;
                    continue;
                }
            };
            let error = match answer {
                Ok(updated) => {
                    self.term.set_entry(updated);
                    return Ok(());
                }
                Err(error) => error,
            };
            doubt |= error.is_unknown();
            match (error.kind(), error.is_definite()) {
                // An update of ours whose answer was lost, or another's: the entry itself tells.
                (ErrorKind::VersionMismatch(_), _) | (_, false) => {
                    if self.look(&value).await {
                        return Ok(());
                    }
                }
                (ErrorKind::NotFound, _) => self.term.end(Unelected::Deleted),
                // What was sent before may have happened, whatever the last word is.
                (kind, _) if doubt => return Err(Error::unknown(Operation::Update, Some(&entry.key), kind.clone())),
                _ => return Err(error),
            }
            tokio::select! {
                biased;
                () = pace.wait(shared.env()) => {}
                _ = self.lost() => {}
            }
        }
    }

    /// Whether the own entry has this value; if it is not the own any more, leadership ends.
    async fn look(&self, value: &Bytes) -> bool {
        let (coordinator, entry) = (&self.term.0.shared.coordinator, self.term.entry());
        let found = tokio::select! {
            biased;
            found = coordinator.get(&entry.key) => found,
            _ = self.lost() => return false,
        };
        match found {
            Ok(Some(now)) if now.created == entry.created && self.identity.owns(&now) => {
                let done = now.value == *value;
                self.term.set_entry(now);
                return done;
            }
            Ok(Some(now)) if now.created == entry.created => self.term.end(Unelected::Hijacked),
            Ok(_) => self.term.end(Unelected::Deleted),
            // Whoever asks again is told.
            Err(_) => {}
        }
        false
    }

    /// Stops leading, and returns when the entry is gone (or its lease has ended). Validity ends at once, and the
    /// entry is removed also if this future is dropped. Only the own entry is touched, never a successor's.
    ///
    /// Fails if the store refuses; then the entry ends with its lease.
    pub async fn resign(mut self) -> Result<()> {
        self.released = true;
        let released = self.release();
        // Without an answer the runtime is shutting down.
        released.await.unwrap_or(Ok(()))
    }

    fn release(&self) -> tokio::sync::oneshot::Receiver<Result<()>> {
        self.term.end(Unelected::Resigned);
        let inner = &self.term.0;
        let trace = Trace {
            entry: Some(self.term.entry()),
            create: self.create.clone(),
        };
        release(&inner.shared, inner.lease, trace)
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        if !self.released {
            drop(self.release());
        }
    }
}
