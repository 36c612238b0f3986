use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use coord_api::{Instant, LeaseId, Nonce};

use crate::core::Core;
use crate::failure::Failure;
use crate::pool::Call;

/// How long the records of creates are kept at least, and at most.
const USED_FOR: Duration = Duration::from_secs(60);
const LIVES_FOR: u64 = 120;
/// More creates of unknown outcome than this are not remembered; those forgotten are still settled by their records.
const MOST_OPEN: usize = 10_000;

/// Which creates have happened, or may not happen any more: records at the store under leases of the driver's own.
///
/// A create puts a record of its nonce and requires that there is none yet, so that copies of it have no effect. The
/// record ends with its lease; a copy that is later still fails because it names that lease. Nothing renews these
/// leases: each serves for a minute and stays for another.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    current: tokio::sync::Mutex<Option<(LeaseId, Instant)>>,
    /// Creates of unknown outcome, and the lease that their copies name.
    open: Mutex<BTreeMap<Nonce, LeaseId>>,
}

impl Ledger {
    pub(crate) fn remember(&self, nonce: Nonce, lease: LeaseId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_OPEN {
            open.pop_first();
        }
        open.insert(nonce, lease);
    }

    pub(crate) fn forget(&self, nonce: Nonce) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&nonce);
    }

    /// The lease that copies of this create name which may still be on their way.
    pub(crate) fn lease_of(&self, nonce: Nonce) -> Option<LeaseId> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&nonce).copied()
    }

    /// The lease has ended early (an operator revoked it): no more records under it.
    pub(crate) async fn drop_lease(&self, lease: LeaseId) {
        self.current.lock().await.take_if(|(current, _)| *current == lease);
    }

    pub(crate) async fn take_lease(&self) -> Option<LeaseId> {
        self.current.lock().await.take().map(|(lease, _)| lease)
    }
}

impl Core {
    /// The lease for new records.
    pub(crate) async fn ledger_lease(&self, call: Call) -> Result<LeaseId, Failure> {
        let waiting = self.ledger.current.lock();
        let Some(mut current) = self.env.timeout_at(call.deadline(), waiting).await else {
            return Err(Failure::deadline(false, call.limit));
        };
        if let Some((lease, granted)) = *current
            && self.env.now() - granted < USED_FOR
        {
            return Ok(lease);
        }
        let (lease, sent) = (self.leases.new_id(&self.env), self.env.now());
        // The create itself has not been sent: whatever happens here, it did not happen.
        self.grant_lease(lease, LIVES_FOR, call)
            .await
            .map_err(|failure| match failure.is_transient() {
                true => Failure {
                    class: coord_api::Class::NotSent,
                    ..failure
                },
                false => failure,
            })?;
        *current = Some((lease, sent));
        Ok(lease)
    }
}
