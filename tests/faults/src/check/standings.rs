//! Where a sequential entry stands: the answer holds every live earlier one. Whoever it misses is a second leader.

use std::collections::BTreeMap;

use super::{Blame, Evidence, Verdict};
use crate::history::{Line, MS, What};

/// An entry that somebody made.
struct Entry<'a> {
    who: &'a str,
    key: &'a str,
    created: u64,
    since: u64,
    lease: u64,
    until: u64,
    /// From when on it may be gone, by its owner's doing.
    leaving: u64,
    /// From when on it surely is.
    removed: u64,
}

pub(super) fn check(lines: &[Line]) -> Verdict {
    let mut verdict = Verdict::new("standings");
    let evidence = Evidence::of(lines);
    let entries = entries(lines);
    for line in lines {
        let What::Stood {
            from,
            created,
            own,
            predecessor,
        } = &line.what
        else {
            continue;
        };
        verdict.checked += 1;
        // All the time from the question to the answer.
        let surely_there = |entry: &Entry| {
            entry.since <= *from
                && line.at <= entry.until.min(entry.leaving)
                && evidence.revoked(entry.lease).is_none_or(|revoked| revoked > line.at)
        };
        let mut wrong = |why: String| {
            let early = evidence.ended_early(from.saturating_sub(3000 * MS), line.at);
            let blame = if early { Blame::Store } else { Blame::Ours };
            verdict.wrong(blame, format!("{} at {} ms: {why}: {line:?}", line.who, line.at / MS));
        };
        match own {
            Some(own) if own != created => wrong("another entry under its name".into()),
            None if entries.get(created).is_some_and(&surely_there) => wrong("its own entry is there".into()),
            _ => {}
        }
        if own.is_none() {
            continue;
        }
        let before = entries.range(..created).rev();
        let last = before.map(|(_, entry)| entry).find(|entry| surely_there(entry));
        let told = predecessor
            .as_ref()
            .map(|key| entries.values().find(|entry| entry.key == key));
        match (told, last) {
            (None, Some(last)) => wrong(format!("{} is before it", last.key)),
            (Some(Some(other)), _) if other.created >= *created => wrong("its predecessor came later".into()),
            // Somebody else's deletion it need not have seen yet.
            (Some(Some(other)), _) if other.who == line.who && other.removed < *from => {
                wrong("it deleted its predecessor itself before".into());
            }
            (Some(Some(other)), Some(last)) if other.created < last.created => {
                wrong(format!("{} is between the two", last.key));
            }
            // Of a caller who never learnt that it was made.
            _ => {}
        }
    }
    verdict
}

/// All entries by their creation.
fn entries(lines: &[Line]) -> BTreeMap<u64, Entry<'_>> {
    let mut entries = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Entered {
                key,
                created,
                lease,
                until,
            } => {
                let entry = Entry {
                    who: &line.who,
                    key,
                    created: *created,
                    since: line.at,
                    lease: *lease,
                    until: *until,
                    leaving: u64::MAX,
                    removed: u64::MAX,
                };
                entries.insert(*created, entry);
            }
            What::Leaving { created } => {
                if let Some(entry) = entries.get_mut(created) {
                    entry.leaving = line.at;
                }
            }
            What::Removed { created } => {
                if let Some(entry) = entries.get_mut(created) {
                    entry.removed = line.at;
                }
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
#[path = "standings_tests.rs"]
mod tests;
