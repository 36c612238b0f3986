use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Closure, Lease, LossReason, SessionState};
use crate::{Env, Grant, Instant};

/// How many ended epochs keep their reason; a reader further behind than that learns only that they ended.
const REMEMBERED: usize = 16;

/// What the loop, the handles and the readers share. Whoever asks gets an answer computed from the clock: a lease whose
/// time is over is lost although the loop did not run.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) env: Env,
    current: Mutex<Current>,
    /// Not a `watch` channel: that one wakes its readers in random order, and one seed must give one history.
    changed: Notify,
}

#[derive(Debug)]
pub(super) struct Current {
    /// The latest epoch, alive or not; 0 before the first.
    epoch: u64,
    phase: Phase,
    losses: VecDeque<Loss>,
}

#[derive(Debug)]
enum Phase {
    Connecting {
        since: Instant,
    },
    Live {
        lease: Lease,
        suspended: Option<Instant>,
        /// The reason to give if its time runs out now.
        silence: LossReason,
    },
    Lost(Loss),
    Closed {
        why: Closure,
        since: Instant,
    },
}

#[derive(Debug, Clone, Copy)]
struct Loss {
    epoch: u64,
    reason: LossReason,
    since: Instant,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(env: Env) -> Shared {
        let current = Current {
            epoch: 0,
            phase: Phase::Connecting { since: env.now() },
            losses: VecDeque::new(),
        };
        Shared {
            env,
            current: Mutex::new(current),
            changed: Notify::new(),
        }
    }

    // Everything below reads the clock *under the lock*: what one reader has seen to be lost, no later renewal revives.

    /// The state now.
    pub(super) fn state(&self) -> SessionState {
        let current = self.lock();
        current.observe(self.env.now())
    }

    /// Why this epoch ended, if it did.
    pub(super) fn ended(&self, epoch: u64) -> Option<LossReason> {
        let current = self.lock();
        current.ended(epoch, self.env.now())
    }

    /// A new lease begins a new epoch; `None` if the session is closed or the grant has no life left.
    pub(super) fn connected(&self, grant: Grant) -> Option<Lease> {
        let mut begun = None;
        self.modify(|current| {
            let lease = Lease {
                lease: grant.lease,
                epoch: current.epoch + 1,
                ttl: grant.ttl,
                valid_until: grant.valid_until,
            };
            if current.is_closed() || self.env.now() >= lease.good_until() {
                return false;
            }
            current.epoch = lease.epoch;
            current.phase = Phase::live(lease);
            begun = Some(lease);
            true
        });
        begun
    }

    /// The lease was renewed. `None` if its time was over before: then it stays lost.
    pub(super) fn renewed(&self, grant: Grant) -> Option<Lease> {
        let mut extended = None;
        self.modify(|current| {
            let now = self.env.now();
            let Some((lease, suspended)) = current.live(now) else {
                return false;
            };
            // Within an epoch the deadline never goes back, whatever the driver answers.
            let lease = Lease {
                ttl: grant.ttl,
                valid_until: lease.valid_until.max(grant.valid_until),
                ..lease
            };
            current.phase = Phase::live(lease);
            extended = current.live(now).map(|(lease, _)| lease);
            // Readers follow the clock themselves: a mere extension wakes nobody.
            suspended.is_some()
        });
        extended
    }

    /// A renewal failed; `silence` is the reason to give if the lease's time runs out meanwhile.
    pub(super) fn suspended(&self, silence: LossReason) {
        self.modify(|current| {
            let now = self.env.now();
            let Some((lease, suspended)) = current.live(now) else {
                return false;
            };
            current.phase = Phase::Live {
                lease,
                suspended: Some(suspended.unwrap_or(now)),
                silence,
            };
            suspended.is_none()
        });
    }

    /// The epoch is over, for this reason unless its time ran out before.
    pub(super) fn lost(&self, reason: LossReason) -> LossReason {
        let mut told = reason;
        self.modify(|current| {
            let Some(loss) = current.end_epoch(self.env.now(), reason) else {
                return false;
            };
            current.phase = Phase::Lost(loss);
            told = loss.reason;
            true
        });
        told
    }

    /// The session is over; the first reason stays. The lease that was in use until now is handed back.
    pub(super) fn close(&self, why: Closure) -> Option<Lease> {
        let mut last = None;
        self.modify(|current| {
            if current.is_closed() {
                return false;
            }
            if let Phase::Live { lease, .. } = current.phase {
                last = Some(lease);
            }
            let since = self.env.now();
            current.end_epoch(since, LossReason::Closed);
            current.phase = Phase::Closed { why, since };
            true
        });
        last
    }

    /// Changes the state; `change` says whether to wake those who wait.
    fn modify(&self, change: impl FnOnce(&mut Current) -> bool) {
        let wake = change(&mut self.lock());
        if wake {
            self.changed.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `find` finds something in the state, woken by changes and by the lease's own end.
    pub(super) fn when<T, F>(self: &Arc<Self>, mut find: F) -> impl Future<Output = T> + use<T, F>
    where
        F: FnMut(&Current, Instant) -> Option<T>,
    {
        let shared = self.clone();
        async move {
            loop {
                let mut change = pin!(shared.changed.notified());
                change.as_mut().enable();
                let deadline = {
                    let current = shared.lock();
                    let now = shared.env.now();
                    if let Some(found) = find(&current, now) {
                        return found;
                    }
                    current.good_until(now)
                };
                let over = async {
                    match deadline {
                        Some(deadline) => shared.env.sleep_until(deadline).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = change => {}
                    () = over => {}
                }
            }
        }
    }
}

// === impl Current ===

impl Current {
    /// The state at `now`.
    pub(super) fn observe(&self, now: Instant) -> SessionState {
        match self.phase {
            Phase::Connecting { since } => SessionState::Connecting { since },
            Phase::Live {
                lease,
                suspended,
                silence,
            } => match suspended {
                _ if now >= lease.good_until() => SessionState::Lost {
                    epoch: lease.epoch,
                    reason: silence,
                    since: lease.good_until(),
                },
                None => SessionState::Connected(lease),
                Some(since) => SessionState::Suspended { lease, since },
            },
            Phase::Lost(loss) => loss.state(),
            Phase::Closed { why, since } => SessionState::Closed { why, since },
        }
    }

    /// Why this epoch ended, if it did.
    pub(super) fn ended(&self, epoch: u64, now: Instant) -> Option<LossReason> {
        if epoch > self.epoch {
            return self.is_closed().then_some(LossReason::Closed);
        }
        match self.observe(now) {
            SessionState::Lost {
                epoch: lost, reason, ..
            } if lost == epoch => Some(reason),
            state if state.lease().is_some_and(|lease| lease.epoch == epoch) => None,
            _ => Some(self.loss_of(epoch).map_or(LossReason::Expired, |loss| loss.reason)),
        }
    }

    /// The loss of this epoch, as a state; of the latest epoch that ended if it is long past.
    pub(super) fn loss_state(&self, epoch: u64) -> Option<SessionState> {
        self.loss_of(epoch).or(self.losses.back().copied()).map(Loss::state)
    }

    fn loss_of(&self, epoch: u64) -> Option<Loss> {
        self.losses.iter().find(|loss| loss.epoch == epoch).copied()
    }

    fn good_until(&self, now: Instant) -> Option<Instant> {
        self.live(now).map(|(lease, _)| lease.good_until())
    }

    fn live(&self, now: Instant) -> Option<(Lease, Option<Instant>)> {
        match self.phase {
            Phase::Live { lease, suspended, .. } if now < lease.good_until() => Some((lease, suspended)),
            _ => None,
        }
    }

    fn end_epoch(&mut self, now: Instant, reason: LossReason) -> Option<Loss> {
        let Phase::Live { lease, silence, .. } = self.phase else {
            return None;
        };
        let over = now >= lease.good_until();
        let loss = Loss {
            epoch: lease.epoch,
            reason: if over { silence } else { reason },
            since: if over { lease.good_until() } else { now },
        };
        if self.losses.len() == REMEMBERED {
            self.losses.pop_front();
        }
        self.losses.push_back(loss);
        Some(loss)
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }
}

impl Phase {
    /// Renewed a moment ago. If its time runs out without a failed renewal in between, this process did not run.
    fn live(lease: Lease) -> Phase {
        Phase::Live {
            lease,
            suspended: None,
            silence: LossReason::ClockJumped,
        }
    }
}

impl Loss {
    fn state(self) -> SessionState {
        SessionState::Lost {
            epoch: self.epoch,
            reason: self.reason,
            since: self.since,
        }
    }
}
