//! The checkers. They know what is promised and what was seen, and nothing of the code.

mod deadlines;
mod elections;
mod evidence;
mod fenced;
mod leaks;
mod memory;
mod origins;
mod recovery;
mod register;
mod registers;
mod registry;
mod sequences;
mod standings;
mod trouble;
mod vacuous;
mod verdict;
mod watches;

pub use elections::{Interval, intervals};
pub use memory::{Growth, growth};
pub use recovery::{has_recovered, slowest};
pub use registers::{Order, linearizable};
pub use trouble::Troubles;
pub use verdict::{Blame, Verdict, Violation};
pub use watches::watches_tell;

use crate::history::{Line, calls};

#[cfg(test)]
mod fixture;

use evidence::Evidence;

/// All verdicts over one history.
pub fn check(lines: &[Line]) -> Vec<Verdict> {
    let mut lines = lines.to_vec();
    lines.sort_by_key(|line| line.at);
    let calls = calls(&lines);
    let troubles = Troubles::of(&lines);
    let (bare, ours): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.who.starts_with('b'));
    let (told_bare, told_ours): (Vec<_>, Vec<_>) = lines.iter().cloned().partition(|line| line.who.starts_with('b'));
    let to_the_end = [&ours[..], &registers::finals(&told_ours)[..]].concat();
    vec![
        registers::check("linearizability", &to_the_end, Blame::Ours),
        origins::check("origins", &told_ours, &to_the_end, Blame::Ours),
        watches::check("watches", &told_ours, &ours, Blame::Ours),
        elections::check(&lines, &troubles),
        fenced::check(&lines, &ours),
        registry::check(&lines, &troubles),
        sequences::check("sequential entries", &ours, Blame::Ours),
        standings::check(&lines),
        deadlines::check(&lines, &ours, &troubles),
        leaks::check(&lines),
        recovery::check(&lines, &ours, &troubles),
        memory::check(&lines),
        registers::check("linearizability, bare client", &bare, Blame::Store),
        origins::check("origins, bare client", &told_bare, &bare, Blame::Store),
        watches::check("watches, bare client", &told_bare, &bare, Blame::Store),
        sequences::check("sequential entries, bare client", &bare, Blame::Store),
    ]
}

/// All verdicts over the history of a whole run, in which every checker has to have had something to look at.
pub fn check_run(lines: &[Line]) -> Vec<Verdict> {
    let mut verdicts = check(lines);
    verdicts.push(vacuous::check(&verdicts));
    verdicts
}
