use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Coordinator, Instant, LeaseId, Result};

/// The leases that may still live at the store and that nobody uses any more, with the time by which they have ended
/// by themselves.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Mutex<BTreeMap<LeaseId, Instant>>);

impl Leftovers {
    pub(super) fn add(&self, lease: LeaseId, ended_by: Instant, now: Instant) {
        let mut leases = self.lock();
        leases.retain(|_, ended_by| *ended_by > now);
        leases.insert(lease, ended_by);
    }

    /// Ends a lease; forgets it once the store was told, or has told that it is gone.
    pub(super) async fn revoke(&self, coordinator: &Arc<dyn Coordinator>, lease: LeaseId) -> Result<()> {
        let revoked = coordinator.revoke(lease).await;
        match &revoked {
            Err(error) if !error.is_definite() => {}
            _ => {
                self.lock().remove(&lease);
            }
        }
        revoked
    }

    pub(super) fn all(&self) -> Vec<LeaseId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
