use coordkit::Instant;
use serde::{Deserialize, Serialize};

/// From when the job is told to stop, and when it must be gone: nanoseconds of CLOCK_BOOTTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) stop_at: u64,
    pub(crate) kill_at: u64,
}

/// What `coord run` tells the guardian, one line of JSON each.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The lease was renewed.
    Limits(Limits),
    /// For the job's whole process group.
    Signal(i32),
    /// Leadership is over: no grace.
    Kill,
}

/// What the guardian tells `coord run`, one line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The job runs; its process group has this number.
    Started { pid: i32 },
    /// There is no process to be had for it.
    Failed { problem: String },
    /// The job's first process was stopped by this signal.
    Paused { signal: i32 },
    /// No further order came in time: the job was told to stop, and that is not undone.
    Stopping,
    /// The job has ended, and nothing of it is left.
    Ended {
        /// Its exit code, or 128 and the number of the signal that ended it.
        code: i32,
        /// Whether it had been told to stop, or was killed, for want of leadership.
        forced: bool,
    },
}

// === impl Limits ===

impl Limits {
    pub(crate) fn new(stop_at: Instant, kill_at: Instant) -> Limits {
        let nanoseconds = |at: Instant| u64::try_from(at.since_start().as_nanos()).unwrap_or(u64::MAX);
        Limits {
            stop_at: nanoseconds(stop_at),
            kill_at: nanoseconds(kill_at),
        }
    }

    pub(crate) fn stop_at(self) -> Instant {
        Instant::from_start(std::time::Duration::from_nanos(self.stop_at))
    }

    pub(crate) fn kill_at(self) -> Instant {
        Instant::from_start(std::time::Duration::from_nanos(self.kill_at))
    }
}
