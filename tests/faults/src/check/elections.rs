//! Two leaders at once, and tokens that do not rise.

use std::collections::BTreeMap;

use super::{Blame, Verdict};
use crate::history::{Leadership, Line, Lost, MS, What};

/// How far apart two early ends may be to have one cause: the store's fault shows within 100 ms at all of its leases, and a
/// watch tells within a second.
const SAME_CAUSE: u64 = 1500 * MS;

/// One leadership, as its holder knew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Who led.
    pub who: String,
    /// Under which token and lease.
    pub leadership: Leadership,
    /// Since when.
    pub from: u64,
    /// Until when it counted on it.
    pub until: u64,
}

/// The leaderships in the order in which they began.
pub fn intervals(lines: &[Line]) -> Vec<Interval> {
    let mut found: BTreeMap<(&str, &Leadership), Interval> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Elected(leadership) => {
                let interval = Interval {
                    who: line.who.clone(),
                    leadership: leadership.clone(),
                    from: line.at,
                    until: line.at,
                };
                found.insert((&line.who, leadership), interval);
            }
            What::Valid { leadership, until } => {
                if let Some(interval) = found.get_mut(&(line.who.as_str(), leadership)) {
                    interval.until = interval.until.max(*until);
                }
            }
            // From then on it knew that it did not lead, whatever it had known before: given back, closed, or told so.
            What::Ended { leadership, .. } => {
                if let Some(interval) = found.get_mut(&(line.who.as_str(), leadership)) {
                    interval.until = interval.until.min(line.at);
                }
            }
            _ => {}
        }
    }
    let mut intervals: Vec<_> = found.into_values().collect();
    intervals.sort_by_key(|interval| interval.from);
    intervals
}

pub(super) fn check(lines: &[Line]) -> Verdict {
    let mut verdict = Verdict::new("elections");
    let intervals = intervals(lines);
    let evidence = Evidence::of(lines);
    verdict.checked = intervals.len();
    for (i, later) in intervals.iter().enumerate() {
        let of_same = intervals[..i].iter();
        for earlier in of_same.filter(|earlier| earlier.leadership.election == later.leadership.election) {
            if earlier.leadership.token >= later.leadership.token {
                verdict.wrong(Blame::Ours, format!("no rising token: {earlier:?} and {later:?}"));
            }
            let until = evidence.revoked(earlier).unwrap_or(u64::MAX).min(earlier.until);
            if until > later.from {
                let (blame, why) = evidence.blame(earlier);
                let by = (until - later.from) / MS;
                verdict.wrong(
                    blame,
                    format!("both valid for {by} ms ({why}): {earlier:?} and {later:?}"),
                );
            }
        }
    }
    for line in lines {
        if let What::Ended {
            leadership,
            lost: Some(Lost::Deleted),
        } = &line.what
        {
            let of_it = |interval: &&Interval| interval.who == line.who && interval.leadership == *leadership;
            let Some(interval) = intervals.iter().find(of_it) else {
                continue;
            };
            if evidence.revoked(interval).is_none() {
                let (blame, why) = evidence.blame_before(interval, u64::MAX);
                verdict.wrong(
                    blame,
                    format!("its entry was deleted while it led ({why}): {interval:?}"),
                );
            }
        }
    }
    verdict
}

/// What others than our drivers saw.
struct Evidence {
    revoked: Vec<(u64, u64)>,
    vanished: Vec<(u64, u64)>,
    early: Vec<u64>,
}

impl Evidence {
    fn of(lines: &[Line]) -> Evidence {
        let mut evidence = Evidence {
            revoked: vec![],
            vanished: vec![],
            early: vec![],
        };
        for line in lines {
            match line.what {
                What::Revoked { lease } => evidence.revoked.push((lease, line.at)),
                What::Vanished { token } => evidence.vanished.push((token, line.at)),
                What::EndedEarly { .. } => evidence.early.push(line.at),
                _ => {}
            }
        }
        evidence
    }

    /// When a third party ended its lease: from then on only fencing covers.
    fn revoked(&self, interval: &Interval) -> Option<u64> {
        let of_it = self
            .revoked
            .iter()
            .filter(|(lease, _)| *lease == interval.leadership.lease);
        of_it.map(|(_, at)| *at).min()
    }

    /// The store's only if its entry was seen to go too early, and at the same time the bare client lost a lease that its
    /// own renewals had proven.
    fn blame(&self, interval: &Interval) -> (Blame, &'static str) {
        self.blame_before(interval, interval.until)
    }

    fn blame_before(&self, interval: &Interval, until: u64) -> (Blame, &'static str) {
        let token = interval.leadership.token;
        let Some((_, gone)) = self.vanished.iter().find(|(vanished, _)| *vanished == token) else {
            return (Blame::Ours, "nobody saw the first one's entry go early");
        };
        if *gone >= until {
            return (Blame::Ours, "the first one's entry was there all the time");
        }
        if self.early.iter().any(|early| early.abs_diff(*gone) <= SAME_CAUSE) {
            return (Blame::Store, "the bare client lost a proven lease at the same time");
        }
        (
            Blame::Ours,
            "the first one's entry went early, and no lease of the bare client did",
        )
    }
}

#[cfg(test)]
#[path = "elections_tests.rs"]
mod tests;
