use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::own::OwnWatch;
use super::shared::Shared;
use super::{ElectionEvent, Unelected};
use crate::{Entry, Instant, Lease};

/// A leadership as seen by the work done under it: the token, the clock's word on it, and the call to stop.
///
/// Cheap to clone, and it does not hold the leadership: only [`Leadership`](crate::Leadership) does. Whatever does not wait
/// may be asked on any thread, inside a tokio runtime or not.
#[derive(Clone)]
pub struct Term(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) lease: Lease,
    pub(super) token: u64,
    /// The own entry in the version known last.
    pub(super) entry: Mutex<Entry>,
    /// The lease as of the latest renewal that was seen.
    renewed: Mutex<Lease>,
    ended: watch::Sender<Option<Unelected>>,
    stop: CancellationToken,
}

// === impl Term ===

impl Term {
    pub(super) fn begin(shared: Arc<Shared>, lease: Lease, entry: Entry) -> Term {
        let token = entry.created;
        info!(election = %shared.config.key, name = %shared.config.name, token, "elected");
        shared.tell(ElectionEvent::Elected { token });
        Term(Arc::new(Inner {
            shared,
            lease,
            token,
            entry: Mutex::new(entry),
            renewed: Mutex::new(lease),
            ended: watch::Sender::new(None),
            stop: CancellationToken::new(),
        }))
    }

    /// The fencing token: higher than that of every leader before. Hand it to whatever is written to.
    pub fn token(&self) -> u64 {
        self.0.token
    }

    /// Whether this leads *now*: by the clock, by the session's lease, and by all that was seen of the own entry.
    /// Once it has said no, it never says yes again.
    pub fn is_valid(&self) -> bool {
        if self.0.ended.borrow().is_some() {
            return false;
        }
        match self.over() {
            None => true,
            Some(reason) => {
                self.end(reason);
                false
            }
        }
    }

    /// Why it is over, without waiting for a task to say so.
    fn over(&self) -> Option<Unelected> {
        let Inner { shared, lease, .. } = &*self.0;
        if shared.closed.is_cancelled() {
            return Some(Unelected::Closed);
        }
        shared.session.ended(lease.epoch).map(Unelected::Session)
    }

    /// Until when the store surely keeps the lease, as far as is known now; it grows with each renewal. Validity ends
    /// a [`margin`](crate::margin) earlier.
    pub fn valid_until(&self) -> Instant {
        self.renewed().valid_until
    }

    /// When work is told to stop if no further renewal succeeds: `valid_until − stop_within − margin`.
    pub fn stop_at(&self) -> Instant {
        self.renewed().good_until() - self.0.shared.config.stop_within
    }

    fn renewed(&self) -> Lease {
        let mut known = lock(&self.0.renewed);
        if let Some(lease) = self.0.shared.session.lease()
            && lease.epoch == known.epoch
        {
            *known = lease;
        }
        *known
    }

    /// Resolves when the work is to stop: at [`stop_at`](Term::stop_at), or as soon as leadership has ended. A renewal
    /// that comes later does not undo it.
    pub async fn stopped(&self) {
        self.0.stop.cancelled().await;
    }

    /// Whether the work is to stop. By the clock: also if the process stood still and nobody has told it yet.
    pub fn is_stopped(&self) -> bool {
        let stop = &self.0.stop;
        if !stop.is_cancelled() && (!self.is_valid() || self.0.shared.env().now() >= self.stop_at()) {
            stop.cancel();
        }
        stop.is_cancelled()
    }

    /// The call to stop, as a token to hand on; cancelling it has no effect on the leadership.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.stop.child_token()
    }

    /// Resolves when leadership has ended, with the reason.
    pub async fn lost(&self) -> Unelected {
        let mut ended = self.0.ended.subscribe();
        let by_notice = async {
            loop {
                if let Some(reason) = *ended.borrow_and_update() {
                    return reason;
                }
                if ended.changed().await.is_err() {
                    // The sender is ours, as long as we live: this cannot be.
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            biased;
            reason = by_notice => reason,
            // By the clock, should the task that watches stand still.
            reason = self.0.shared.session.lost(self.0.lease.epoch) => {
                self.end(Unelected::Session(reason));
                let told = *self.0.ended.borrow();
                told.unwrap_or(Unelected::Session(reason))
            }
        }
    }

    /// Ends it; the first reason stays.
    pub(super) fn end(&self, reason: Unelected) {
        let Inner {
            shared, token, ended, ..
        } = &*self.0;
        let first = ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(reason);
            first
        });
        if first {
            self.0.stop.cancel();
            let config = &shared.config;
            if reason == Unelected::Resigned {
                info!(election = %config.key, name = %config.name, token, "unelected: {reason}");
            } else {
                warn!(election = %config.key, name = %config.name, token, "unelected: {reason}");
            }
            shared.tell(ElectionEvent::Unelected { token: *token, reason });
        }
    }

    /// Watches the session, the own entry and the clock until leadership has ended.
    pub(super) async fn watch_over(self, mut own: OwnWatch) {
        let shared = &self.0.shared;
        let tell_stop = async {
            loop {
                let stop_at = self.stop_at();
                if shared.env().now() >= stop_at {
                    self.0.stop.cancel();
                    return std::future::pending::<()>().await;
                }
                shared.env().sleep_until(stop_at).await;
            }
        };
        let reason = tokio::select! {
            biased;
            () = shared.closed.cancelled() => Unelected::Closed,
            reason = shared.session.lost(self.0.lease.epoch) => Unelected::Session(reason),
            reason = own.gone() => {
                if self.0.ended.borrow().is_none() {
                    // Perhaps with its lease: then the session is to know.
                    shared.session.check();
                }
                reason
            }
            () = tell_stop => return,
        };
        self.end(reason);
    }

    pub(super) fn entry(&self) -> Entry {
        lock(&self.0.entry).clone()
    }

    pub(super) fn set_entry(&self, entry: Entry) {
        *lock(&self.0.entry) = entry;
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("token", &self.0.token)
            .field("ended", &*self.0.ended.borrow())
            .field("stopped", &self.0.stop.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
