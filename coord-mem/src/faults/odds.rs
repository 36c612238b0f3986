use std::time::Duration;

use coord_api::{Env, Operation};

use super::{Fault, GiveUp};

/// How likely each fault is for each call, from 0 (never) to 1 (always); drawn from the client's own randomness, so
/// that one seed gives one history.
///
/// ```
/// use coord_mem::Odds;
///
/// let flaky = Odds { lose_answer: 0.1, arrive_late: 0.1, ..Odds::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// [`Fault::NotSent`].
    pub not_sent: f64,
    /// [`Fault::LoseRequest`], at once or at the deadline.
    pub lose_request: f64,
    /// [`Fault::LoseAnswer`], at once or at the deadline.
    pub lose_answer: f64,
    /// [`Fault::ArriveLate`], at once or at the deadline, by less than [`longest`](Odds::longest).
    pub arrive_late: f64,
    /// [`Fault::Delay`], by less than [`longest`](Odds::longest).
    pub delay: f64,
    /// [`Fault::DelayAnswer`], by less than [`longest`](Odds::longest).
    pub delay_answer: f64,
    /// [`Fault::EndLeaseEarly`], of grants and renewals only.
    pub end_lease_early: f64,
    /// Before the call, all watches of the client have a gap, as by [`Faults::gap`](crate::Faults::gap).
    pub gap: f64,
    /// The upper bound of delays.
    pub longest: Duration,
}

impl Default for Odds {
    /// No faults; delays, once they are likely, below a second.
    fn default() -> Odds {
        Odds {
            not_sent: 0.0,
            lose_request: 0.0,
            lose_answer: 0.0,
            arrive_late: 0.0,
            delay: 0.0,
            delay_answer: 0.0,
            end_lease_early: 0.0,
            gap: 0.0,
            longest: Duration::from_secs(1),
        }
    }
}

impl Odds {
    /// One fault at most for one call; probabilities that add up to more than 1 leave the last ones less.
    pub(super) fn draw_fault(&self, env: &Env, operation: Operation) -> Fault {
        let give_up = || match env.random_u64() & 1 {
            0 => GiveUp::AtOnce,
            _ => GiveUp::AtDeadline,
        };
        let some_time = || env.random_duration(self.longest);
        let mut left = fraction(env);
        let mut hits = |odds: f64| {
            left -= odds;
            left < 0.0
        };
        if hits(self.not_sent) {
            Fault::NotSent
        } else if hits(self.lose_request) {
            Fault::LoseRequest(give_up())
        } else if hits(self.lose_answer) {
            Fault::LoseAnswer(give_up())
        } else if hits(self.arrive_late) {
            Fault::ArriveLate(give_up(), some_time())
        } else if hits(self.delay) {
            Fault::Delay(some_time())
        } else if hits(self.delay_answer) {
            Fault::DelayAnswer(some_time())
        } else if matches!(operation, Operation::Grant | Operation::Renew) && hits(self.end_lease_early) {
            Fault::EndLeaseEarly
        } else {
            Fault::Pass
        }
    }

    pub(super) fn draw_gap(&self, env: &Env) -> bool {
        self.gap > 0.0 && fraction(env) < self.gap
    }
}

/// Evenly from 0 to below 1, in the 53 bits that a float holds exactly.
fn fraction(env: &Env) -> f64 {
    (env.random_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
