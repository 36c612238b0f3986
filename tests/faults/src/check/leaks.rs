//! Nothing is left at the store when everybody has closed.

use super::{Blame, Verdict};
use crate::history::{Line, What};

pub(super) fn check(lines: &[Line]) -> Verdict {
    let mut verdict = Verdict::new("leaks");
    for line in lines {
        match &line.what {
            What::Closed => verdict.checked += 1,
            What::Left { what } => verdict.wrong(Blame::Ours, format!("left behind: {what}")),
            _ => {}
        }
    }
    verdict
}

#[cfg(test)]
#[path = "leaks_tests.rs"]
mod tests;
