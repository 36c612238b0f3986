//! Real three-node clusters under load and faults, with checkers that know nothing of the code.
//!
//! [`run()`] starts servers, proxies and client processes, lets the [nemesis] break what it can on a
//! seeded schedule, collects a [history] and has it [checked](mod@check). The binary `faults` does that many times and
//! reports; `docs/reliability.md` says what came out.

pub mod check;
pub mod client;
pub mod history;
pub mod nemesis;
mod report;
mod run;
mod stage;
mod timeline;

pub use report::{Report, Summary};
pub use run::{Ran, RunOptions, run, run_with};
pub use stage::{Actor, Cast, Cluster, Scribe, left_now, leftovers};
pub use timeline::timeline;
