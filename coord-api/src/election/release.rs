use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::{debug, warn};

use super::ElectionEvent;
use super::pace::Pace;
use super::shared::Shared;
use crate::{Create, Entry, ErrorKind, Expect, Instant, Lease, Result, margin};

/// What a candidate may have left at the store.
pub(super) enum Trace {
    /// A create whose outcome is not known.
    Maybe(Create),
    /// This entry.
    There(Entry),
}

/// Removes it, whatever becomes of the caller: tried again until it is gone, or its lease has ended.
pub(super) fn release(shared: &Arc<Shared>, lease: Lease, trace: Trace) -> oneshot::Receiver<Result<()>> {
    let (done, answer) = oneshot::channel();
    let release = Release {
        bound: end_of(shared, &lease, lease.valid_until),
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
            let attempt = match &self.trace {
                Trace::Maybe(create) => self.shared.coordinator.abandon(create).await,
                Trace::There(entry) => {
                    let expected = Expect::Version(entry.version);
                    self.shared.coordinator.delete(&entry.key, expected).await
                }
            };
            match attempt {
                Ok(()) => return Ok(()),
                Err(error) => match error.kind() {
                    // Closing has revoked the lease.
                    ErrorKind::NotFound | ErrorKind::LeaseLost(_) | ErrorKind::Closed => return Ok(()),
                    ErrorKind::VersionMismatch(_) => {
                        if !self.look_again().await {
                            return Ok(());
                        }
                    }
                    _ if error.is_definite() && !error.is_transient() => return Err(error),
                    _ => debug!("release: {error}"),
                },
            }
            pace.wait(&env).await;
        }
    }

    /// Whether the entry of this incarnation is still there, and then in which version: nobody else's is touched.
    async fn look_again(&mut self) -> bool {
        let Trace::There(entry) = &mut self.trace else {
            return true;
        };
        match self.shared.coordinator.get(&entry.key).await {
            Ok(Some(now)) if now.created == entry.created => *entry = now,
            Ok(_) => return false,
            Err(error) => debug!("release: {error}"),
        }
        true
    }
}
