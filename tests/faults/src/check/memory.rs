//! The memory of a client does not grow with what it has done.

use std::collections::BTreeMap;

use super::{Blame, Verdict};
use crate::history::{Line, MS, What};

/// What caches, pools and the allocator may take until they have what they need.
const ROOM: u64 = 24 * 1024;
/// A younger one is still filling its pools.
const WARM: u64 = 5000 * MS;

/// One client's memory in kB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// Whose.
    pub who: String,
    /// Once it was warm.
    pub first: u64,
    /// The last time it was looked at.
    pub last: u64,
    /// How long between the two, in ns.
    pub over: u64,
}

/// How the memory of each client grew that lived for at least twice as long as it takes to get warm.
pub fn growth(lines: &[Line]) -> Vec<Growth> {
    let mut seen: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for line in lines {
        if let What::Memory { kb } = line.what {
            seen.entry(&line.who).or_default().push((line.at, kb));
        }
    }
    let growths = seen.into_iter().filter_map(|(who, seen)| {
        let (born, (end, last)) = (seen.first()?.0, *seen.last()?);
        let (from, first) = *seen.iter().find(|(at, _)| *at >= born + WARM)?;
        (end >= born + 2 * WARM).then(|| Growth {
            who: who.to_owned(),
            first,
            last,
            over: end - from,
        })
    });
    growths.collect()
}

pub(super) fn check(lines: &[Line]) -> Verdict {
    let mut verdict = Verdict::new("memory");
    for growth in growth(lines) {
        verdict.checked += 1;
        if growth.last > growth.first + ROOM {
            verdict.wrong(Blame::Ours, format!("{growth:?}, in kB"));
        }
    }
    verdict
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
