//! Two leaders at once, and tokens that do not rise.

use std::collections::BTreeMap;

use super::{Blame, Evidence, Troubles, Verdict};
use crate::history::{Leadership, Line, Lost, MS, What};

/// The work looks every 60 ms whether it is to stop, a write of it ends by its deadline, and a machine may be busy.
const OVERRUN: u64 = 2500 * MS;

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
    /// When its work stopped, if it did.
    pub stopped: Option<u64>,
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
                    stopped: None,
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
                    interval.stopped = Some(line.at);
                }
            }
            _ => {}
        }
    }
    let mut intervals: Vec<_> = found.into_values().collect();
    intervals.sort_by_key(|interval| interval.from);
    intervals
}

pub(super) fn check(lines: &[Line], troubles: &Troubles) -> Verdict {
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
            let until = evidence
                .revoked(earlier.leadership.lease)
                .unwrap_or(u64::MAX)
                .min(earlier.until);
            if until > later.from {
                let (blame, why) = evidence.blame(earlier.leadership.token, earlier.until);
                let by = (until - later.from) / MS;
                verdict.wrong(
                    blame,
                    format!("both valid for {by} ms ({why}): {earlier:?} and {later:?}"),
                );
            }
        }
    }
    overruns(lines, &intervals, troubles, &mut verdict);
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
            if evidence.revoked(interval.leadership.lease).is_none() {
                let (blame, why) = evidence.blame(interval.leadership.token, u64::MAX);
                verdict.wrong(
                    blame,
                    format!("its entry was deleted while it led ({why}): {interval:?}"),
                );
            }
        }
    }
    verdict
}

/// Work that goes on although its leadership is over: nobody told it.
fn overruns(lines: &[Line], intervals: &[Interval], troubles: &Troubles, verdict: &mut Verdict) {
    for interval in intervals {
        let of_it = |line: &&Line| match &line.what {
            What::Closed => line.who == interval.who,
            What::Killed { client } => *client == interval.who,
            _ => false,
        };
        let died = || lines.iter().find(of_it).or(lines.last()).map(|line| line.at);
        let Some(stopped) = interval.stopped.or_else(died) else {
            continue;
        };
        if stopped > interval.until + OVERRUN && !troubles.stood_still(&interval.who, interval.from, stopped) {
            let by = (stopped - interval.until) / MS;
            verdict.wrong(Blame::Ours, format!("went on for {by} ms after its end: {interval:?}"));
        }
    }
}

#[cfg(test)]
#[path = "elections_tests.rs"]
mod tests;
