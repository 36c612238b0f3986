use std::time::Duration;

use coord_api::Capabilities;

/// How a [`MemStore`](crate::MemStore) behaves.
///
/// ```
/// use std::time::Duration;
/// use coord_api::Env;
/// use coord_mem::{MemStore, StoreOptions};
///
/// # let _ = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().enter();
/// let options = StoreOptions { proof_lag: Duration::from_secs(1), ..StoreOptions::default() };
/// let store = MemStore::with_options(&Env::simulated(1), options);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// The deadline of each call when nobody asked for a tighter one.
    pub call_deadline: Duration,
    /// How much less than its ttl from the moment of sending an acknowledged grant or renewal proves.
    ///
    /// On real stores an acknowledgement is no proof of a whole ttl (a new leader may not have heard of the renewal).
    /// With a lag, [`Grant::valid_until`](coord_api::Grant::valid_until) is that much earlier, and
    /// [`Fault::EndLeaseEarly`](crate::Fault::EndLeaseEarly) and
    /// [`Faults::end_lease_early`](crate::Faults::end_lease_early) have a lease end there, although the last
    /// acknowledged renewal would suggest a longer life.
    pub proof_lag: Duration,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            call_deadline: Duration::from_secs(5),
            proof_lag: Duration::ZERO,
        }
    }
}

impl StoreOptions {
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            driver: "memory",
            max_ttl: Duration::from_secs(86_400),
            expiry_slack: Duration::from_millis(100),
            renewals_per_ttl: if self.proof_lag.is_zero() { 3 } else { 4 },
            max_value: Capabilities::MAX_VALUE,
            call_deadline: self.call_deadline,
        }
    }
}
