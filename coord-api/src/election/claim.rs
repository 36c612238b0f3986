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
    /// The create was sent and is not settled.
    open: bool,
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
            open: false,
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
            let sent_before = std::mem::replace(&mut self.open, true);
            let error = match self.shared.coordinator.create(&self.create).await {
                Ok(entry) => return Ok(self.made(entry)),
                Err(error) => error,
            };
            if let Some(holder) = error.holder().filter(|holder| self.identity.owns(holder)) {
                // A conflict that names oneself is success.
                return Ok(self.made(holder.clone()));
            }
            match error.class() {
                Class::Definite => {
                    self.open = false;
                    return Err(error);
                }
                Class::NotSent => self.open = sent_before,
                Class::Unknown => {}
            }
            pace.wait(&env).await;
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
    pub(super) fn take(mut self) -> Result<(Arc<Shared>, Lease, Identity, Entry)> {
        self.open = false;
        match self.entry.take() {
            Some(entry) => Ok((self.shared.clone(), self.lease, self.identity.clone(), entry)),
            None => Err(Error::closed(Operation::Create, Some(&self.shared.config.key))),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let trace = match self.entry.take() {
            Some(entry) => Trace::There(entry),
            None if self.open => Trace::Maybe(self.create.clone()),
            None => return,
        };
        drop(release(&self.shared, self.lease, trace));
    }
}
