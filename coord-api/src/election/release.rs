use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::{debug, warn};

use super::ElectionEvent;
use super::pace::Pace;
use super::shared::Shared;
use crate::{Create, Entry, ErrorKind, Expect, Instant, Lease, Result, margin};

/// What a candidate may have left at the store.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// Its entry, if it knows of one.
    pub(super) entry: Option<Entry>,
    /// The create, if a copy of its request may still be under way: also when the entry is known, since a copy that
    /// arrives after the deletion would make it again.
    pub(super) create: Option<Create>,
}

/// Removes it, whatever becomes of the caller: tried again until it is gone, or its lease has ended.
pub(super) fn release(shared: &Arc<Shared>, lease: Lease, trace: Trace) -> oneshot::Receiver<Result<()>> {
    let (done, answer) = oneshot::channel();
    let release = Release {
        // If the session has lost it, it may have renewed it until a moment ago.
        bound: end_of(shared, &lease, shared.env().now()),
        shared: shared.clone(),
        lease,
        trace,
    };
    shared.own(async move {
        let shared = release.shared.clone();
        let result = release.run().await;
        if let Err(error) = &result {
            warn!(key = %shared.config.key, "entry left to end with its lease: {error}");
            shared.tell(ElectionEvent::Failed(error.to_string().into()));
        }
        // The caller may have gone.
        let _ = done.send(result);
    });
    answer
}

struct Release {
    shared: Arc<Shared>,
    lease: Lease,
    trace: Trace,
    /// When the lease has ended at the latest.
    bound: Instant,
}

fn end_of(shared: &Shared, lease: &Lease, valid_until: Instant) -> Instant {
    // Without a further renewal the store ends it a ttl after the last one was answered, give or take its slack.
    valid_until + lease.ttl + shared.coordinator.capabilities().expiry_slack + margin(lease.ttl)
}

impl Release {
    async fn run(mut self) -> Result<()> {
        let env = self.shared.env().clone();
        let mut pace = Pace::new();
        loop {
            if let Some(valid_until) = self.shared.session.valid_until(self.lease.epoch) {
                self.bound = end_of(&self.shared, &self.lease, valid_until);
            }
            if env.now() >= self.bound {
                return Ok(());
            }
            let (coordinator, Trace { entry, create }) = (&self.shared.coordinator, &self.trace);
            let attempt = match (entry, create) {
                (Some(entry), _) => coordinator.delete(&entry.key, Expect::Version(entry.version)).await,
                (None, Some(create)) => coordinator.abandon(create).await,
                (None, None) => return Ok(()),
            };
            match attempt {
                Ok(()) => {
                    self.done();
                    continue;
                }
                Err(error) => match error.kind() {
                    // Closing has revoked the lease.
                    ErrorKind::LeaseLost(_) | ErrorKind::Closed => return Ok(()),
                    ErrorKind::NotFound => {
                        self.done();
                        continue;
                    }
                    ErrorKind::VersionMismatch(_) => self.look_again().await,
                    _ if error.is_definite() && !error.is_transient() => return Err(error),
                    _ => debug!("release: {error}"),
                },
            }
            pace.wait(&env).await;
        }
    }

    /// One of the two is done with; the entry comes first.
    fn done(&mut self) {
        if self.trace.entry.take().is_none() {
            self.trace.create = None;
        }
    }

    /// In which version the entry is now, if it is still the same: nobody else's is touched.
    async fn look_again(&mut self) {
        let Some(entry) = &mut self.trace.entry else {
            return;
        };
        match self.shared.coordinator.get(&entry.key).await {
            Ok(Some(now)) if now.created == entry.created => *entry = now,
            Ok(_) => self.trace.entry = None,
            Err(error) => debug!("release: {error}"),
        }
    }
}
