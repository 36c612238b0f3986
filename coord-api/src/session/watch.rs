use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use super::{LossReason, SessionState};

/// A reader of a session's state: always the latest, and changes can be awaited. It does not keep the session alive.
///
/// A slow reader skips what is past, but never a loss: if the epoch that it saw alive has ended, it is told so, even
/// when a newer one lives already.
#[derive(Clone)]
pub struct SessionWatch {
    shared: Arc<Shared>,
    seen: SessionState,
}

impl SessionWatch {
    pub(super) fn new(shared: Arc<Shared>) -> SessionWatch {
        let seen = shared.state();
        SessionWatch { shared, seen }
    }

    /// The state now, by the clock; [`changed`](SessionWatch::changed) takes no notice of it.
    pub fn state(&self) -> SessionState {
        self.shared.state()
    }

    /// The state that [`changed`](SessionWatch::changed) told last; at first, that of the moment of subscribing.
    pub fn seen(&self) -> SessionState {
        self.seen
    }

    /// Waits until the state is another than the one [seen](SessionWatch::seen) last, and tells it. That a lease was
    /// renewed once more is no change. `None` once [`Closed`](SessionState::Closed) was told: nothing follows.
    ///
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) -> Option<SessionState> {
        if self.seen.is_closed() {
            return None;
        }
        let seen = self.seen;
        let next = self.shared.when(move |current, now| {
            let state = current.observe(now);
            let skipped_a_loss = match (seen.lease(), state.lease()) {
                (Some(then), Some(now)) => then.epoch != now.epoch,
                _ => false,
            };
            match seen.lease() {
                Some(then) if skipped_a_loss => current.loss_state(then.epoch),
                _ => state.differs(&seen).then_some(state),
            }
        });
        self.seen = next.await;
        Some(self.seen)
    }

    /// Waits until this epoch has ended, and tells why. See [`Session::lost`](crate::Session::lost).
    pub async fn lost(&self, epoch: u64) -> LossReason {
        self.shared.when(move |current, now| current.ended(epoch, now)).await
    }
}

impl fmt::Debug for SessionWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionWatch").field("seen", &self.seen).finish()
    }
}
