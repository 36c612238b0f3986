use std::pin::pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Instant;

/// A jump of the system's clock past a deadline is noticed within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Tokio refuses timers too far ahead; nobody waits that long.
const LONGEST_TIMER: Duration = Duration::from_secs(86_400 * 365);

#[derive(Debug)]
pub(super) enum Clock {
    /// The machine's time since boot, suspended time included: read anew at every look.
    Boot { read: fn() -> Duration },
    /// Tokio's clock since `base`, and how far this client's clock has jumped ahead of it.
    Tokio { base: tokio::time::Instant, jumped: Jumped },
}

/// How far a clock has jumped, and who waits for the next jump. Not a `watch` channel: that one wakes its readers in
/// random order, and one seed would no longer give one history.
#[derive(Debug, Default)]
pub(super) struct Jumped {
    ahead: Mutex<Duration>,
    again: Notify,
}

impl Clock {
    pub(super) fn boot() -> Clock {
        Clock::Boot { read: since_boot }
    }

    /// All of a process count from the same beginning, so that their instants compare.
    pub(super) fn tokio() -> Clock {
        static BASE: OnceLock<std::time::Instant> = OnceLock::new();
        let base = *BASE.get_or_init(std::time::Instant::now);
        Clock::Tokio {
            base: tokio::time::Instant::from_std(base),
            jumped: Jumped::default(),
        }
    }

    pub(super) fn simulated() -> Clock {
        Clock::Tokio {
            base: tokio::time::Instant::now(),
            jumped: Jumped::default(),
        }
    }

    pub(super) fn child(&self) -> Clock {
        match self {
            Clock::Boot { read } => Clock::Boot { read: *read },
            Clock::Tokio { base, .. } => Clock::Tokio {
                base: *base,
                jumped: Jumped::default(),
            },
        }
    }

    pub(super) fn now(&self) -> Instant {
        match self {
            Clock::Boot { read } => Instant::from_start(read()),
            Clock::Tokio { base, jumped } => Instant::from_start(base.elapsed() + jumped.ahead()),
        }
    }

    pub(super) async fn sleep_until(&self, deadline: Instant) {
        match self {
            Clock::Boot { .. } => loop {
                let left = deadline - self.now();
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LOOK_AGAIN)).await;
            },
            Clock::Tokio { jumped, .. } => loop {
                let mut jump = pin!(jumped.again.notified());
                jump.as_mut().enable();
                let left = deadline - self.now();
                if left.is_zero() {
                    return;
                }
                tokio::select! {
                    biased;
                    () = jump => {}
                    () = tokio::time::sleep(left.min(LONGEST_TIMER)) => {}
                }
            },
        }
    }

    pub(super) fn jump(&self, by: Duration) {
        match self {
            Clock::Boot { .. } => {}
            Clock::Tokio { jumped, .. } => jumped.jump(by),
        }
    }
}

impl Jumped {
    fn ahead(&self) -> Duration {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jump(&self, by: Duration) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) += by;
        self.again.notify_waiters();
    }
}

fn since_boot() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    // Elsewhere the monotonic clock is the best there is: on macOS it counts suspended time, too.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let id = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn the_boot_clock_advances_and_its_sleep_ends() {
        let clock = Clock::boot();
        let start = clock.now();
        clock.sleep_until(start + Duration::from_millis(20)).await;
        assert!(clock.now() >= start + Duration::from_millis(20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_boot_clock_counts_the_time_since_boot_suspended_time_included() {
        // What the kernel tells there is CLOCK_BOOTTIME. On a machine that was suspended (or in a time namespace of its
        // own: `unshare --time --boottime 1000`) CLOCK_MONOTONIC is behind it.
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let told: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let off = (since_boot().as_secs_f64() - told).abs();
        assert!(off < 1.0, "{off} s off");
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_of_the_machines_clock_is_noticed_within_250_ms_although_the_timer_sleeps() {
        static SUSPENDED: AtomicU64 = AtomicU64::new(0);
        static AWAKE: OnceLock<tokio::time::Instant> = OnceLock::new();
        AWAKE.get_or_init(tokio::time::Instant::now);
        // Timers sleep through a suspension, as tokio's virtual time knows nothing of it; the boot clock counts it.
        let clock = Clock::Boot {
            read: || AWAKE.get().unwrap().elapsed() + Duration::from_secs(SUSPENDED.load(Ordering::SeqCst)),
        };
        let deadline = clock.now() + Duration::from_secs(3600);
        let sleeper = tokio::spawn(async move { clock.sleep_until(deadline).await });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!sleeper.is_finished());
        SUSPENDED.store(3600, Ordering::SeqCst);
        let woken = tokio::time::Instant::now();
        sleeper.await.unwrap();
        let late = woken.elapsed();
        assert!(late <= Duration::from_millis(250), "noticed after {late:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_ends_a_sleep_that_it_passes() {
        let clock = std::sync::Arc::new(Clock::simulated());
        let deadline = clock.now() + Duration::from_secs(10);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(deadline).await }
        });
        let started = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        clock.jump(Duration::from_secs(60));
        sleeper.await.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }
}
