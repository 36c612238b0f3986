//! What happened in an election, as lines that each candidate writes, and the checker of them: the same for simulated
//! candidates and for processes on real stores.

mod check;
mod line;

pub use check::{Interval, check, intervals};
pub use line::{Line, What};
