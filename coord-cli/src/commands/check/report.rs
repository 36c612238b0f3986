use std::time::Duration;

use coordkit::{Capabilities, Config, margin};
use serde::Serialize;

use super::Measured;
use crate::escape::Escaped;

/// All that was found out.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    store: String,
    driver: &'static str,
    pub(super) endpoints: Vec<Endpoint>,
    asked_ttl_ms: u64,
    #[serde(flatten)]
    pub(super) times: Option<Times>,
    pub(super) problems: Vec<Problem>,
    #[serde(skip)]
    pub(super) capabilities: Capabilities,
}

/// Whether one server answers.
#[derive(Debug, Serialize)]
pub(super) struct Endpoint {
    pub(super) endpoint: String,
    /// Why it does not answer.
    pub(super) error: Option<String>,
}

/// What follows from the granted ttl; all in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    pub(super) granted_ttl_ms: u64,
    pub(super) round_trip_us: u64,
    /// A lease is renewed so often.
    pub(super) renewal_interval_ms: u64,
    /// Without an answered renewal, leadership ends this long after the last one.
    pub(super) give_up_ms: u64,
    /// Work is told to stop this long after it.
    pub(super) stop_ms: u64,
    /// After a crash another one leads this much later at the latest.
    pub(super) worst_takeover_ms: u64,
    #[serde(skip)]
    pub(super) granted: Duration,
    #[serde(skip)]
    pub(super) round_trip: Duration,
    #[serde(skip)]
    pub(super) shortest: Option<Duration>,
}

/// What is wrong, and what to change.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    /// Whether the store cannot be used like this.
    pub(super) fatal: bool,
    pub(super) what: String,
    pub(super) change: String,
}

// === impl Report ===

impl Report {
    pub(super) fn new(config: &Config, capabilities: Capabilities, endpoints: Vec<Endpoint>) -> Report {
        Report {
            store: config.store.to_string(),
            driver: capabilities.driver,
            endpoints,
            asked_ttl_ms: millis(config.session.ttl),
            times: None,
            problems: Vec::new(),
            capabilities,
        }
    }

    pub(super) fn add(&mut self, config: &Config, measured: &Measured) {
        let granted = measured.granted.ttl;
        let give_up = granted.saturating_sub(margin(granted));
        self.times = Some(Times {
            granted_ttl_ms: millis(granted),
            round_trip_us: u64::try_from(measured.round_trip.as_micros()).unwrap_or(u64::MAX),
            renewal_interval_ms: millis(granted / self.capabilities.renewals_per_ttl.max(1)),
            give_up_ms: millis(give_up),
            stop_ms: millis(give_up.saturating_sub(config.stop_within)),
            worst_takeover_ms: millis(granted + self.capabilities.expiry_slack),
            granted,
            round_trip: measured.round_trip,
            shortest: measured.shortest,
        });
    }

    pub(super) fn words(&self) -> String {
        let mut lines = vec![format!("store              {} (driver {})", self.store, self.driver)];
        for Endpoint { endpoint, error } in &self.endpoints {
            lines.push(match error {
                None => format!("endpoint           {endpoint}: answers"),
                Some(error) => format!("endpoint           {endpoint}: {}", Escaped::new(error)),
            });
        }
        if let Some(times) = &self.times {
            let ms = |ms: u64| format!("{:?}", Duration::from_millis(ms));
            lines.extend([
                format!("round trip         {:?}", times.round_trip),
                format!(
                    "granted ttl        {} (asked for {})",
                    ms(times.granted_ttl_ms),
                    ms(self.asked_ttl_ms)
                ),
                format!("renewal            every {}", ms(times.renewal_interval_ms)),
                format!("work is stopped    {} after the last proven renewal", ms(times.stop_ms)),
                format!("leadership ends    {} after it", ms(times.give_up_ms)),
                format!(
                    "take-over          {} after a crash at the latest",
                    ms(times.worst_takeover_ms)
                ),
            ]);
        }
        for Problem { fatal, what, change } in &self.problems {
            let kind = if *fatal { "wrong" } else { "warning" };
            lines.push(format!("{kind:<18} {}", Escaped::new(what)));
            lines.push(format!("{:<18} {}", "  what to do", Escaped::new(change)));
        }
        if self.problems.is_empty() {
            lines.push("all is well".into());
        }
        lines.join("\n")
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
