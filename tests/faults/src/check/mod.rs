//! The checkers. They know what is promised and what was seen, and nothing of the code.

mod deadlines;
mod elections;
mod fenced;
mod leaks;
mod memory;
mod recovery;
mod register;
mod registers;
mod registry;
mod sequences;
mod trouble;
mod verdict;
mod watches;

pub use elections::{Interval, intervals};
pub use memory::{Growth, growth};
pub use recovery::{has_recovered, slowest};
pub use registers::linearizable;
pub use trouble::Troubles;
pub use verdict::{Blame, Verdict, Violation};
pub use watches::watches_tell;

use crate::history::{Line, calls};

#[cfg(test)]
mod fixture;

/// All verdicts over one history.
pub fn check(lines: &[Line]) -> Vec<Verdict> {
    let mut lines = lines.to_vec();
    lines.sort_by_key(|line| line.at);
    let calls = calls(&lines);
    let troubles = Troubles::of(&lines);
    let (bare, ours): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.who.starts_with('b'));
    vec![
        registers::check("linearizability", &ours, Blame::Ours),
        registers::check("linearizability, bare client", &bare, Blame::Store),
        watches::check(&lines, &ours),
        elections::check(&lines),
        fenced::check(&lines, &ours),
        registry::check(&lines, &troubles),
        sequences::check(&ours),
        deadlines::check(&lines, &ours, &troubles),
        leaks::check(&lines),
        recovery::check(&lines, &ours, &troubles),
        memory::check(&lines),
    ]
}
