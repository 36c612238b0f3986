use std::time::Duration;

use backon::{BackoffBuilder, ConstantBuilder, ExponentialBuilder};

use crate::Env;

/// How long to wait between attempts to get a lease again: a [`Strategy`], jitter, and perhaps a limit.
///
/// The default is exponential: 1 s, doubling, 30 s at most, with 20 % jitter and no limit. A success starts it anew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// How the delay grows.
    pub strategy: Strategy,
    /// Each delay is shortened by a random part of up to this share of it (0 to 1), so that clients which lost the
    /// store together do not come back together. Never longer: the strategy's maximum is one.
    pub jitter: f64,
    /// Give up when no lease could be had for this long. `None`: never.
    pub limit: Option<Duration>,
}

/// How the delay between attempts grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strategy {
    /// `first`, then `factor` times as long each time, at most `max`.
    Exponential {
        /// The first delay.
        first: Duration,
        /// By how much each is longer than the one before; at least 1.
        factor: f32,
        /// The longest delay.
        max: Duration,
    },
    /// `first`, then `step` longer each time, at most `max`.
    Linear {
        /// The first delay.
        first: Duration,
        /// What is added each time.
        step: Duration,
        /// The longest delay.
        max: Duration,
    },
    /// Always the same.
    Constant {
        /// The delay.
        delay: Duration,
    },
}

/// The delays of one outage, without end.
pub(super) struct Delays {
    plain: Box<dyn Iterator<Item = Duration> + Send>,
    jitter: f64,
    env: Env,
}

// === impl Backoff ===

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            strategy: Strategy::default(),
            jitter: 0.2,
            limit: None,
        }
    }
}

impl Backoff {
    /// What is wrong with it, in words for whoever wrote the configuration.
    pub(super) fn problem(&self) -> Option<String> {
        if !(0.0..=1.0).contains(&self.jitter) {
            return Some(format!(
                "backoff: jitter is {}, it must lie between 0 and 1",
                self.jitter
            ));
        }
        if self.limit.is_some_and(|limit| limit.is_zero()) {
            return Some("backoff: a limit of zero gives up before trying; leave it out for no limit".into());
        }
        self.strategy.problem()
    }

    /// The delays of one outage.
    pub(super) fn delays(&self, env: &Env) -> Delays {
        Delays {
            plain: self.strategy.delays(),
            jitter: self.jitter,
            env: env.clone(),
        }
    }
}

// === impl Strategy ===

impl Default for Strategy {
    fn default() -> Strategy {
        Strategy::Exponential {
            first: Duration::from_secs(1),
            factor: 2.0,
            max: Duration::from_secs(30),
        }
    }
}

impl Strategy {
    fn problem(&self) -> Option<String> {
        let (first, max) = match *self {
            Strategy::Exponential { factor, .. } if !factor.is_finite() || factor < 1.0 => {
                return Some(format!("backoff: factor is {factor}, it must be at least 1"));
            }
            Strategy::Exponential { first, max, .. } | Strategy::Linear { first, max, .. } => (first, max),
            Strategy::Constant { delay } => (delay, delay),
        };
        if first.is_zero() {
            return Some(
                "backoff: the first delay is zero, which would hammer the store; use at least a few ms".into(),
            );
        }
        (max < first).then(|| format!("backoff: max ({max:?}) is shorter than the first delay ({first:?})"))
    }

    fn delays(self) -> Box<dyn Iterator<Item = Duration> + Send> {
        match self {
            Strategy::Exponential { first, factor, max } => Box::new(
                ExponentialBuilder::new()
                    .with_min_delay(first)
                    .with_factor(factor)
                    .with_max_delay(max)
                    .without_max_times()
                    .build(),
            ),
            // backon has no linear strategy.
            Strategy::Linear { first, step, max } => Box::new(std::iter::successors(Some(first), move |delay| {
                Some(delay.saturating_add(step).min(max))
            })),
            Strategy::Constant { delay } => {
                Box::new(ConstantBuilder::new().with_delay(delay).without_max_times().build())
            }
        }
    }
}

// === impl Delays ===

impl Delays {
    /// The next delay, jitter applied. The randomness is the environment's, not backon's: one seed, one history.
    pub(super) fn next(&mut self) -> Duration {
        let plain = self.plain.next().unwrap_or(Duration::from_secs(30));
        plain - self.env.random_duration(plain.mul_f64(self.jitter)).min(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(strategy: Strategy, count: usize) -> Vec<f64> {
        let backoff = Backoff {
            strategy,
            jitter: 0.0,
            limit: None,
        };
        let mut delays = backoff.delays(&Env::tokio());
        (0..count).map(|_| delays.next().as_secs_f64()).collect()
    }

    #[tokio::test]
    async fn the_default_doubles_from_1_s_to_30_s_and_stays() {
        assert_eq!(
            seconds(Strategy::default(), 8),
            [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
        );
    }

    #[tokio::test]
    async fn linear_adds_and_constant_stays() {
        let (first, step, max) = (Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(6));
        assert_eq!(
            seconds(Strategy::Linear { first, step, max }, 5),
            [1.0, 3.0, 5.0, 6.0, 6.0]
        );
        assert_eq!(seconds(Strategy::Constant { delay: first }, 3), [1.0, 1.0, 1.0]);
    }

    #[tokio::test]
    async fn jitter_shortens_by_at_most_its_share() {
        let mut delays = Backoff::default().delays(&Env::tokio());
        let mut varied = false;
        for plain in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            let delay = delays.next().as_secs_f64();
            assert!((plain * 0.8..=plain).contains(&delay), "{delay} of {plain}");
            varied |= delay != plain;
        }
        assert!(varied);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let second = Duration::from_secs(1);
        let exponential = |first, factor, max| Strategy::Exponential { first, factor, max };
        for (strategy, jitter, limit, says) in [
            (Strategy::default(), 1.5, None, "jitter"),
            (Strategy::default(), f64::NAN, None, "jitter"),
            (Strategy::default(), 0.0, Some(Duration::ZERO), "limit"),
            (exponential(second, 0.5, second), 0.0, None, "factor"),
            (exponential(second, f32::NAN, second), 0.0, None, "factor"),
            (exponential(Duration::ZERO, 2.0, second), 0.0, None, "zero"),
            (exponential(second * 2, 2.0, second), 0.0, None, "shorter"),
        ] {
            let backoff = Backoff {
                strategy,
                jitter,
                limit,
            };
            assert!(backoff.problem().unwrap().contains(says), "{backoff:?}");
        }
        assert_eq!(Backoff::default().problem(), None);
    }
}
