use std::time::Duration;

use coordkit::margin;

/// From SIGKILL until everything is gone.
pub(super) const TO_DIE: Duration = Duration::from_millis(100);
/// The longest grace that nobody asked for.
const LONGEST_GRACE: Duration = Duration::from_secs(5);

/// How long a job has to stop, and how long before the end of leadership it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Margins {
    /// From SIGTERM to SIGKILL.
    pub(super) grace: Duration,
    /// From SIGTERM until everything is gone.
    pub(super) stop_within: Duration,
}

// === impl Margins ===

impl Margins {
    /// What fits into the granted ttl: stopping and the margin take at most half of it, so that an ordinary renewal
    /// comes in time. Otherwise the arithmetic.
    pub(super) fn new(ttl: Duration, grace: Option<Duration>) -> Result<Margins, String> {
        let most = (ttl / 2).saturating_sub(margin(ttl) + TO_DIE);
        let grace = grace.unwrap_or((ttl / 3).min(LONGEST_GRACE).min(most));
        if grace > most || most.is_zero() {
            return Err(format!(
                "--grace {grace:?} does not fit: with {TO_DIE:?} to kill and a margin of {:?} it is {:?}, and stopping may \
                 take at most half of the granted ttl of {ttl:?}; a grace of {most:?} at most, or a longer --ttl",
                margin(ttl),
                grace + TO_DIE + margin(ttl),
            ));
        }
        Ok(Margins {
            grace,
            stop_within: grace + TO_DIE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_default_is_a_third_of_the_ttl_five_seconds_at_most_and_always_fits() {
        for (ttl, grace) in [(60.0, 5.0), (12.0, 4.0), (3.0, 1.0), (0.5, 0.05)] {
            assert_eq!(Margins::new(seconds(ttl), None).unwrap().grace, seconds(grace), "{ttl}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_arithmetic() {
        let refused = Margins::new(seconds(8.0), Some(seconds(4.0))).unwrap_err();
        for part in ["4s", "100ms", "160ms", "4.26s", "8s", "3.74s"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }
        assert_eq!(
            Margins::new(seconds(8.0), Some(seconds(3.74))).unwrap().stop_within,
            seconds(3.84)
        );
        assert_eq!(
            Margins::new(seconds(8.0), Some(seconds(0.0))).unwrap().grace,
            seconds(0.0)
        );
        assert!(Margins::new(seconds(0.4), None).is_err());
    }
}
