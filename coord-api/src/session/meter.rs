use metrics::{Counter, Gauge, counter, gauge};

use super::{Lease, LossReason};
use crate::Env;

/// What a session tells the `metrics` facade. Labels: the driver and the session's name.
pub(super) struct Meter {
    labels: [(&'static str, String); 2],
    renewals: Counter,
    failures: Counter,
    retries: Counter,
    epochs: Counter,
    deadline: Gauge,
}

impl Meter {
    pub(super) fn new(driver: &'static str, name: &str) -> Meter {
        let labels = [("driver", driver.to_owned()), ("session", name.to_owned())];
        Meter {
            renewals: counter!("coord_session_renewals_total", &labels),
            failures: counter!("coord_session_failures_total", &labels),
            retries: counter!("coord_session_retries_total", &labels),
            epochs: counter!("coord_session_epochs_total", &labels),
            deadline: gauge!("coord_session_deadline_seconds", &labels),
            labels,
        }
    }

    /// A lease was granted.
    pub(super) fn granted(&self, env: &Env, lease: &Lease) {
        self.epochs.increment(1);
        self.left(env, lease);
    }

    /// A renewal succeeded.
    pub(super) fn renewed(&self, env: &Env, lease: &Lease) {
        self.renewals.increment(1);
        self.left(env, lease);
    }

    /// A grant or a renewal failed.
    pub(super) fn failed(&self) {
        self.failures.increment(1);
    }

    /// It is tried again.
    pub(super) fn retried(&self) {
        self.retries.increment(1);
    }

    /// An epoch ended.
    pub(super) fn lost(&self, reason: LossReason) {
        let [driver, session] = self.labels.clone();
        counter!(
            "coord_session_losses_total",
            &[driver, session, ("reason", reason.to_string())]
        )
        .increment(1);
        self.deadline.set(0.0);
    }

    /// How many seconds are left until the loss would be declared.
    pub(super) fn left(&self, env: &Env, lease: &Lease) {
        self.deadline.set((lease.good_until() - env.now()).as_secs_f64());
    }
}
