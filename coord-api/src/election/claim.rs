use std::sync::Arc;

use super::Recipe;
use super::identity::Identity;
use super::pace::Pace;
use super::release::{Trace, release};
use super::shared::Shared;
use crate::{Class, Create, CreateMode, Entry, Error, Lease, Operation, Result};

/// A candidate's entry, from before its create until it leads: dropped on the way, it removes whatever there is.
pub(super) struct Claim {
    pub(super) shared: Arc<Shared>,
    pub(super) lease: Lease,
    pub(super) identity: Identity,
    create: Create,
    entry: Option<Entry>,
    /// Whether a copy of the create may be under way.
    doubt: bool,
}

impl Claim {
    pub(super) fn new(shared: &Arc<Shared>, lease: Lease) -> Claim {
        let identity = Identity::new(shared.env(), &shared.config.name);
        Claim {
            create: Claim::attempt(shared, &lease, &identity),
            shared: shared.clone(),
            lease,
            identity,
            entry: None,
            doubt: false,
        }
    }

    fn attempt(shared: &Shared, lease: &Lease, identity: &Identity) -> Create {
        let mode = match shared.config.recipe {
            Recipe::Sequence => CreateMode::Sequential(lease.lease),
            Recipe::Cas => CreateMode::Ephemeral(lease.lease),
        };
        Create::new(shared.env(), shared.config.key.clone(), identity.value(), mode)
    }

    /// Creates the entry: *one* create, sent again as it is until its outcome is known.
    pub(super) async fn make(&mut self) -> Result<Entry> {
        let env = self.shared.env().clone();
        let mut pace = Pace::new();
        loop {
            // While the call is under way its outcome is unknown, should it be dropped.
            let doubt = std::mem::replace(&mut self.doubt, true);
            let error = match self.shared.coordinator.create(&self.create).await {
                Ok(entry) => {
                    self.doubt = doubt;
                    return Ok(self.made(entry));
                }
                Err(error) => error,
            };
            if let Some(holder) = error.holder().filter(|holder| self.identity.owns(holder)) {
                // A conflict that names oneself is success.
                return Ok(self.made(holder.clone()));
            }
            match error.class() {
                Class::Definite => {
                    self.doubt = doubt;
                    self.settle().await;
                    return Err(error);
                }
                Class::NotSent => self.doubt = doubt,
                Class::Unknown => {}
            }
            pace.wait(&env).await;
        }
    }

    /// Before another create is tried: no copy of this one may arrive any more.
    async fn settle(&mut self) {
        let env = self.shared.env().clone();
        let mut pace = Pace::new();
        while self.doubt {
            match self.shared.coordinator.abandon(&self.create).await {
                Err(error) if !error.is_definite() => pace.wait(&env).await,
                _ => self.doubt = false,
            }
        }
    }

    fn made(&mut self, entry: Entry) -> Entry {
        self.entry = Some(entry.clone());
        entry
    }

    /// After a definite refusal: another attempt of the same candidate.
    pub(super) fn again(&mut self) {
        self.create = Claim::attempt(&self.shared, &self.lease, &self.identity);
    }

    /// The lease, if leadership may be granted on it now: same epoch, and time left before work would have to stop.
    pub(super) fn may_lead(&self) -> bool {
        let lease = self.shared.session.lease();
        lease.is_some_and(|lease| {
            let stop_at = lease.good_until() - self.shared.config.stop_within;
            lease.epoch == self.lease.epoch && self.shared.env().now() < stop_at
        })
    }

    /// The entry now belongs to a leadership.
    pub(super) fn take(mut self) -> Result<(Arc<Shared>, Lease, Identity, Trace)> {
        match self.trace() {
            Some(trace) => Ok((self.shared.clone(), self.lease, self.identity.clone(), trace)),
            None => Err(Error::closed(Operation::Create, Some(&self.shared.config.key))),
        }
    }

    /// What is to be removed in the end; it is no longer this one's to do so.
    fn trace(&mut self) -> Option<Trace> {
        let entry = self.entry.take();
        let create = std::mem::take(&mut self.doubt).then(|| self.create.clone());
        (entry.is_some() || create.is_some()).then_some(Trace { entry, create })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(trace) = self.trace() {
            drop(release(&self.shared, self.lease, trace));
        }
    }
}
