use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{debug, info, warn};

use super::leftovers::Leftovers;
use super::meter::Meter;
use super::shared::Shared;
use super::{Closure, Lease, LossReason, SessionConfig};
use crate::{Coordinator, Env, Error, LeaseId, Task};

/// How an epoch ended.
enum Ended {
    Lost(LossReason),
    CoordinatorClosed,
}

/// What a failed renewal means.
enum Failed {
    Retry,
    Ended(Ended),
}

/// When to renew a lease of a given ttl.
struct Pace {
    /// From one renewal to the next.
    interval: Duration,
    /// How long one renewal may take: several must fit between the first that fails and the loss.
    deadline: Duration,
    /// The longest wait between tries when one has failed.
    retry: Duration,
}

/// The loop behind a session: grant, renew, declare lost, grant anew.
pub(super) struct Keeper {
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) config: SessionConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) leftovers: Arc<Leftovers>,
    pub(super) meter: Meter,
    /// Somebody has reason to doubt the lease.
    pub(super) doubt: Arc<Notify>,
}

impl Keeper {
    /// Runs until the session is closed, and says so in the state when it ends by itself.
    pub(super) async fn run(self) {
        let mut revoking: Vec<Task> = Vec::new();
        let mut first = true;
        let why = loop {
            let lease = match self.grant(first).await {
                Ok(lease) => lease,
                Err(why) => break why,
            };
            first = false;
            revoking.retain(|task| !task.is_finished());
            // The store is back: what it was not told at the time of a loss, it is told now.
            revoking.extend(self.leftovers.all().into_iter().map(|lease| self.revoke(lease)));
            match self.keep(lease).await {
                Ended::CoordinatorClosed => break Closure::CoordinatorClosed,
                Ended::Lost(reason) => {
                    self.declare_lost(lease, reason);
                    revoking.push(self.revoke(lease.lease));
                }
            }
        };
        warn!(session = %self.config.name, "no further lease: {why}");
        self.shared.close(why);
    }

    /// A live lease. After a loss, a delay precedes the first attempt, too: a lease that is lost at once again and
    /// again must not become a storm.
    async fn grant(&self, first: bool) -> Result<Lease, Closure> {
        let (env, name) = (self.env(), &self.config.name);
        let started = env.now();
        let mut delays = self.config.backoff.delays(env);
        if !first {
            let delay = delays.next();
            warn!(session = %name, "no lease, retrying in {delay:.1?}");
            env.sleep(delay).await;
        }
        loop {
            let failure = match self.coordinator.grant(self.config.ttl).await {
                Ok(grant) => match self.shared.connected(grant) {
                    Some(lease) => {
                        self.meter.granted(env, &lease);
                        info!(session = %name, lease = %lease.lease, epoch = lease.epoch, ttl = ?lease.ttl, "lease granted");
                        return Ok(lease);
                    }
                    None => {
                        self.abandon(grant.lease, grant.ttl);
                        "the lease was over before its grant was answered".to_owned()
                    }
                },
                Err(error) if error.is_closed() => return Err(Closure::CoordinatorClosed),
                Err(error) => error.to_string(),
            };
            self.meter.failed();
            let delay = delays.next();
            if self
                .config
                .backoff
                .limit
                .is_some_and(|limit| env.now() + delay > started + limit)
            {
                warn!(session = %name, "failed to grant a lease: {failure}");
                return Err(Closure::GaveUp);
            }
            warn!(session = %name, "failed to grant a lease: {failure}, retrying in {delay:.1?}");
            env.sleep(delay).await;
            self.meter.retried();
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, granted: Lease) -> Ended {
        let env = self.env();
        let mut lease = granted;
        let mut sent = env.now();
        let mut failing = false;
        loop {
            let pace = Pace::of(lease.ttl, self.coordinator.capabilities().renewals_per_ttl);
            let now = env.now();
            let soon = now + pace.retry - env.random_duration(pace.retry / 2);
            let next = if failing {
                soon
            } else {
                // Half of what is left, should the store have granted less than the schedule counts on.
                (sent + pace.interval)
                    .min(now + (lease.good_until() - now) / 2)
                    .max(soon)
            };
            tokio::select! {
                biased;
                () = self.doubt.notified() => {}
                () = env.sleep_until(next.min(lease.good_until())) => {}
            }
            sent = env.now();
            if failing && sent < lease.good_until() {
                self.meter.retried();
            }
            match self.renew(&lease, pace.deadline).await {
                Ok(renewed) => {
                    failing = false;
                    lease = renewed;
                }
                Err(Failed::Retry) => failing = true,
                Err(Failed::Ended(ended)) => return ended,
            }
        }
    }

    async fn renew(&self, lease: &Lease, deadline: Duration) -> Result<Lease, Failed> {
        let (env, name) = (self.env(), &self.config.name);
        let left = lease.good_until() - env.now();
        if left.is_zero() {
            return Err(Failed::Ended(Ended::Lost(LossReason::Unreachable)));
        }
        let renewal = self.coordinator.within(deadline.min(left));
        // By the local clock, whatever the driver does: no word from the store is needed to declare a loss.
        let answer = env.timeout_at(lease.good_until(), renewal.renew(lease.lease)).await;
        match answer {
            Some(Ok(grant)) => match self.shared.renewed(grant) {
                Some(renewed) => {
                    self.meter.renewed(env, &renewed);
                    debug!(session = %name, lease = %lease.lease, ttl = ?renewed.ttl, "lease renewed");
                    Ok(renewed)
                }
                None => Err(Failed::Ended(Ended::Lost(LossReason::Unreachable))),
            },
            Some(Err(error)) => self.failed(lease, &error),
            None => {
                self.meter.failed();
                Err(Failed::Ended(Ended::Lost(LossReason::Unreachable)))
            }
        }
    }

    fn failed(&self, lease: &Lease, error: &Error) -> Result<Lease, Failed> {
        self.meter.failed();
        self.meter.left(self.env(), lease);
        if error.is_closed() {
            return Err(Failed::Ended(Ended::CoordinatorClosed));
        }
        if error.is_lease_lost() {
            return Err(Failed::Ended(Ended::Lost(LossReason::Revoked)));
        }
        let silence = if error.is_transient() {
            LossReason::Unreachable
        } else {
            LossReason::Expired
        };
        self.shared.suspended(silence);
        warn!(session = %self.config.name, lease = %lease.lease, "failed to renew the lease: {error}, will retry");
        Err(Failed::Retry)
    }

    fn declare_lost(&self, lease: Lease, reason: LossReason) {
        let reason = self.shared.lost(reason);
        self.meter.lost(reason);
        warn!(session = %self.config.name, lease = %lease.lease, epoch = lease.epoch, "lease lost: {reason}");
        self.abandon(lease.lease, lease.ttl);
    }

    /// Nobody uses this lease any more, but the store may still keep it.
    fn abandon(&self, lease: LeaseId, ttl: Duration) {
        let now = self.env().now();
        let ended_by = now + ttl + self.coordinator.capabilities().expiry_slack;
        self.leftovers.add(lease, ended_by, now);
    }

    /// Ends a lease that nobody uses any more; in vain, it ends by itself.
    fn revoke(&self, lease: LeaseId) -> Task {
        let (coordinator, leftovers) = (self.coordinator.clone(), self.leftovers.clone());
        self.env().spawn(async move {
            if let Err(error) = leftovers.revoke(&coordinator, lease).await {
                debug!(%lease, "could not revoke the old lease: {error}");
            }
        })
    }

    fn env(&self) -> &Env {
        self.coordinator.env()
    }
}

impl Pace {
    fn of(ttl: Duration, renewals_per_ttl: u32) -> Pace {
        let interval = ttl / renewals_per_ttl.max(2);
        Pace {
            interval,
            deadline: interval / 2,
            retry: (ttl / 30).clamp(Duration::from_millis(20), Duration::from_secs(1)),
        }
    }
}
