//! The process that stands between `coord run` and the job, so that the job ends when it has to, whatever becomes of
//! `coord` itself: killed with -9, stopped with SIGSTOP, cut off from the store.
//!
//! It is this very program again, under a hidden name, with one thread. It is the parent of the job, so that there is no
//! moment at which the job runs and nobody watches; and it adopts what the job's processes leave behind (a child
//! subreaper), so that it finds them all. It knows when the job is to be told to stop and when it must be gone, as
//! moments of CLOCK_BOOTTIME, from the last order that it got; the end of the pipe means: at once.

mod client;
mod launch;
mod orders;
mod process;
mod signals;
mod tree;

pub(crate) use client::{Guarded, Job};
pub(crate) use launch::Launch;
pub(crate) use orders::{Limits, Report};
pub(crate) use process::Guard;
pub(crate) use signals::Signals;

/// The name under which this program is started again as a guardian.
const GUARDIAN: &str = "__guardian";
/// The same, as what becomes the job.
const LAUNCH: &str = "__launch";
/// This program's own file, also when another one has taken its name since.
const OURSELVES: &str = "/proc/self/exe";
