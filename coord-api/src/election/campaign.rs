use std::time::Duration;

use futures::FutureExt;
use tracing::{debug, warn};

use super::claim::Claim;
use super::own::OwnWatch;
use super::pace::Pace;
use super::{Election, Leadership, Recipe};
use crate::{Entry, Error, ErrorKind, Key, Result, Target, WatchEvent};

/// Against the herd: how long candidates wait at most, each its own time, before they try for a key that got free.
const JITTER: Duration = Duration::from_millis(20);

impl Election {
    /// Contends until elected.
    ///
    /// While the store cannot be reached, or has no room, it waits; after a loss of the session it starts over with the new lease; as
    /// long as its entry is there it keeps its place. Dropping the future leaves nothing behind: what was created is
    /// removed in the background. Ends with an error only if the election or the session is closed, or the store
    /// refuses for good.
    pub async fn campaign(&self) -> Result<Leadership> {
        let _busy = self.shared.busy();
        let mut pace = Pace::new();
        loop {
            if let Some(leadership) = self.attempt().await? {
                return Ok(leadership);
            }
            // The entry or the lease was lost: not in a tight loop, should that be so again and again.
            pace.wait(self.env()).await;
        }
    }

    /// One life of one entry; `None`: start over.
    async fn attempt(&self) -> Result<Option<Leadership>> {
        let (shared, session) = (&self.shared, &self.shared.session);
        let lease = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return Err(shared.closed_error()),
            lease = session.connected() => lease.map_err(|why| shared.closed_error().with_source(why))?,
        };
        shared.config.check(&lease)?;
        let mut claim = Claim::new(shared, lease);
        let outcome = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return Err(shared.closed_error()),
            reason = session.lost(lease.epoch) => {
                debug!(election = %shared.config.key, "session lost while waiting: {reason}");
                return Ok(None);
            }
            outcome = self.contend(&mut claim) => outcome,
        };
        match outcome {
            Ok(Some(own)) => Leadership::begin(claim, own).map(Some),
            // The entry is gone, perhaps with its lease: if so, the session learns it now, not at the next renewal.
            Ok(None) => {
                session.check();
                Ok(None)
            }
            Err(error) => match error.kind() {
                ErrorKind::LeaseLost(_) => {
                    session.check();
                    Ok(None)
                }
                ErrorKind::Abandoned => Ok(None),
                ErrorKind::StoreFull(_) => {
                    warn!(election = %shared.config.key, "asked again until there is room: {error}");
                    Ok(None)
                }
                _ if error.is_transient() => Ok(None),
                _ => Err(error),
            },
        }
    }

    async fn contend(&self, claim: &mut Claim) -> Result<Option<OwnWatch>> {
        let entry = match self.shared.config.recipe {
            Recipe::Sequence => claim.make().await?,
            Recipe::Cas => self.grab(claim).await?,
        };
        let mut own = OwnWatch::start(&self.shared, &entry, &claim.identity);
        let granted = tokio::select! {
            biased;
            reason = own.gone() => {
                debug!(election = %self.shared.config.key, "own entry lost while waiting: {reason}");
                false
            }
            granted = self.wait_turn(claim, &entry) => granted?,
        };
        Ok(granted.then_some(own))
    }

    /// Waits until the entry leads and leadership may be granted; `false` if the entry is gone or another's.
    ///
    /// Whatever woke it, it looks again: only an own entry that is there, its own, and the lowest, under a lease that
    /// still counts *after* the answer, leads.
    async fn wait_turn(&self, claim: &Claim, entry: &Entry) -> Result<bool> {
        let mut pace = Pace::new();
        loop {
            let standing = match self.stands(entry).await {
                Ok(standing) => standing,
                Err(error) if error.is_definite() => return Err(error),
                Err(error) => {
                    debug!(election = %self.shared.config.key, "{error}");
                    pace.wait(self.env()).await;
                    continue;
                }
            };
            match standing {
                (Some(now), _) if !claim.identity.owns(&now) => return Ok(false),
                (None, _) => return Ok(false),
                (Some(_), Some(before)) => self.wait_gone(&before).await?,
                (Some(_), None) if claim.may_lead() => return Ok(true),
                // The lease is about to end unless the session renews it.
                (Some(_), None) => pace.wait(self.env()).await,
            }
        }
    }

    /// The own entry as it is now, and the one before it.
    async fn stands(&self, entry: &Entry) -> Result<(Option<Entry>, Option<Key>)> {
        let coordinator = &self.shared.coordinator;
        match self.shared.config.recipe {
            Recipe::Sequence => {
                let standing = coordinator.standing(entry).await?;
                Ok((standing.own, standing.predecessor))
            }
            Recipe::Cas => {
                let now = coordinator.get(&entry.key).await?;
                Ok((now.filter(|now| now.created == entry.created), None))
            }
        }
    }

    /// Waits until the entry that has this name now is gone: also if the name has another entry then, be it by hand or
    /// by a late copy of the create. Returns early when the watch breaks: the caller looks again.
    async fn wait_gone(&self, key: &Key) -> Result<()> {
        let mut watch = match self.shared.coordinator.watch(&Target::Key(key.clone())).await {
            Ok(watch) => watch,
            Err(error) => return self.look_later(error).await,
        };
        let mut awaited = None;
        while let Some(event) = watch.next().await {
            let created = match event {
                Ok(WatchEvent::State(entries) | WatchEvent::Resync(entries)) => {
                    entries.first().map(|entry| entry.created)
                }
                Ok(WatchEvent::Put(entry)) => Some(entry.created),
                Ok(WatchEvent::Delete { .. }) => None,
                Err(error) => return self.look_later(error).await,
            };
            if created.is_none_or(|created| *awaited.get_or_insert(created) != created) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// CAS: creates the entry, as often as it takes.
    async fn grab(&self, claim: &mut Claim) -> Result<Entry> {
        loop {
            let error = match claim.make().await {
                Ok(entry) => return Ok(entry),
                Err(error) => error,
            };
            let Some(holder) = error.holder() else {
                return Err(error);
            };
            if holder.lease.is_none() {
                warn!(election = %holder.key, "a persistent entry holds the key: nobody leads until it is deleted");
            }
            self.wait_free(holder.created).await?;
            claim.again();
        }
    }

    /// CAS: waits until the holder's entry is gone and, after a moment, no other has taken its place.
    async fn wait_free(&self, mut holder: u64) -> Result<()> {
        let mut watch = match self
            .shared
            .coordinator
            .watch(&Target::Key(self.shared.config.key.clone()))
            .await
        {
            Ok(watch) => watch,
            Err(error) => return self.look_later(error).await,
        };
        while let Some(event) = watch.next().await {
            let mut free = match freed(event, &mut holder) {
                Ok(free) => free,
                Err(error) => return self.look_later(error).await,
            };
            if !free {
                continue;
            }
            self.env().sleep(self.env().random_duration(JITTER)).await;
            while let Some(Some(event)) = watch.next().now_or_never() {
                match freed(event, &mut holder) {
                    Ok(now_free) => free = now_free,
                    Err(error) => return self.look_later(error).await,
                }
            }
            if free {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn look_later(&self, error: Error) -> Result<()> {
        if error.is_definite() {
            return Err(error);
        }
        debug!(election = %self.shared.config.key, "{error}");
        Pace::new().wait(self.env()).await;
        Ok(())
    }
}

/// Whether the key is free after this event; who holds it otherwise.
fn freed(event: Result<WatchEvent>, holder: &mut u64) -> Result<bool> {
    Ok(match event? {
        WatchEvent::State(entries) | WatchEvent::Resync(entries) => match entries.first() {
            Some(entry) => {
                *holder = (*holder).max(entry.created);
                false
            }
            None => true,
        },
        WatchEvent::Put(entry) => {
            *holder = (*holder).max(entry.created);
            false
        }
        WatchEvent::Delete { created, .. } => created >= *holder,
    })
}
