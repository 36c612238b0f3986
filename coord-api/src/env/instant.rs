use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of an [`Env`](crate::Env)'s clock. Comparable only within one world (one machine, or one simulation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The moment so long after the clock's own beginning (on Linux, in production: the machine's boot).
    pub const fn from_start(elapsed: Duration) -> Instant {
        Instant(elapsed)
    }

    /// How long after the clock's own beginning this is.
    pub const fn since_start(self) -> Duration {
        self.0
    }
}

/// Saturates instead of overflowing: "never" stays "never".
impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(duration))
    }
}

/// Saturates at the clock's beginning.
impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(duration))
    }
}

/// How much later `self` is; zero if it is earlier.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
