//! Everything works again within a bound after the last fault.

use std::collections::{BTreeMap, BTreeSet};

use super::{Blame, Troubles, Verdict};
use crate::history::{Call, Line, MS, Op, Outcome, What};

/// Elections of the store, sessions that end and come back with their backoff, and a busy machine.
pub(crate) const BOUND: u64 = 25_000 * MS;

/// What has to work again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Write(String),
    Watch(String, u64),
    Sequence(String),
    Registration(String),
    Leader(String),
}

pub(super) fn check(lines: &[Line], calls: &[Call], troubles: &Troubles) -> Verdict {
    let mut verdict = Verdict::new("recovery");
    let Some(last) = troubles.last() else {
        return verdict;
    };
    for (need, after) in recovered(lines, calls, last, &survivors(lines)) {
        verdict.checked += 1;
        match after {
            Some(at) if at <= last + BOUND => {}
            Some(at) => verdict.wrong(
                Blame::Ours,
                format!("{need:?} only {} ms after the last fault", (at - last) / MS),
            ),
            None => verdict.wrong(Blame::Ours, format!("{need:?} never again after the last fault")),
        }
    }
    verdict
}

/// The fault after which it took longest until everything worked again, and how long. Only faults that had the time.
pub fn slowest(lines: &[Line], calls: &[Call], troubles: &Troubles) -> Option<(String, u64)> {
    let mut spans = troubles.spans.clone();
    spans.sort_by_key(|span| span.to);
    let times = spans.iter().filter_map(|span| {
        let next = spans
            .iter()
            .map(|other| other.from)
            .filter(|from| *from > span.to)
            .min();
        let all = recovered(lines, calls, span.to, &survivors(lines))
            .into_values()
            .collect::<Option<Vec<u64>>>()?;
        let at = all.into_iter().max()?;
        (next.is_none_or(|next| at < next)).then(|| (format!("{} of {}", span.name, span.target), at - span.to))
    });
    times.max_by_key(|(_, took)| *took)
}

/// Whether everything works again since the last fault, for those who live now.
pub fn has_recovered(lines: &[Line], alive: &[String]) -> bool {
    let Some(last) = Troubles::of(lines).last() else {
        return true;
    };
    let alive = alive
        .iter()
        .map(String::as_str)
        .filter(|who| who.starts_with('c'))
        .collect();
    let needs = recovered(lines, &crate::history::calls(lines), last, &alive);
    needs.values().all(Option::is_some)
}

/// Our clients that lived to the end.
fn survivors(lines: &[Line]) -> BTreeSet<&str> {
    let quiet = lines
        .iter()
        .find(|line| line.what == What::Quiet)
        .map_or(0, |line| line.at);
    let closed = lines
        .iter()
        .filter(|line| line.what == What::Closed && line.at >= quiet);
    closed
        .map(|line| line.who.as_str())
        .filter(|who| who.starts_with('c'))
        .collect()
}

/// When each need was met for the first time after `since`, of those that these clients have.
fn recovered(lines: &[Line], calls: &[Call], since: u64, alive: &BTreeSet<&str>) -> BTreeMap<Need, Option<u64>> {
    let quiet = lines
        .iter()
        .find(|line| line.what == What::Quiet)
        .map_or(u64::MAX, |line| line.at);
    let mut met: BTreeMap<Need, Option<u64>> = BTreeMap::new();
    // What nobody does in this run, nobody needs.
    let writes = calls.iter().any(|call| matches!(call.op, Op::Create { .. }));
    let sequences = calls.iter().any(|call| matches!(call.op, Op::Sequential { .. }));
    let registrations = lines.iter().any(|line| matches!(line.what, What::Registered { .. }));
    for who in alive {
        let who = (*who).to_owned();
        if writes {
            met.insert(Need::Write(who.clone()), None);
        }
        if sequences {
            met.insert(Need::Sequence(who.clone()), None);
        }
        if registrations {
            met.insert(Need::Registration(who), None);
        }
    }
    for line in lines {
        match &line.what {
            What::Watching { watch, .. } if alive.contains(line.who.as_str()) => {
                met.insert(Need::Watch(line.who.clone(), *watch), None);
            }
            What::Campaigns { election } => {
                met.insert(Need::Leader(election.clone()), None);
            }
            _ => {}
        }
    }
    let mut meet = |need: Need, at: u64| {
        if let Some(met) = met.get_mut(&need) {
            *met = Some(met.map_or(at, |before| before.min(at)));
        }
    };
    for call in calls.iter().filter(|call| call.from >= since) {
        match (&call.op, &call.end) {
            (Op::Create { .. } | Op::Update { .. }, Some((at, Outcome::Done { .. }))) => {
                meet(Need::Write(call.who.clone()), *at);
            }
            (Op::Sequential { .. }, Some((at, Outcome::Done { .. }))) => meet(Need::Sequence(call.who.clone()), *at),
            _ => {}
        }
    }
    let mut registered: BTreeSet<&str> = BTreeSet::new();
    for line in lines.iter().filter(|line| line.at <= quiet) {
        match &line.what {
            What::Seen { watch, .. } if line.at >= since => meet(Need::Watch(line.who.clone(), *watch), line.at),
            What::Registered { registered: true, .. } => {
                if line.at >= since {
                    meet(Need::Registration(line.who.clone()), line.at);
                } else {
                    registered.insert(&line.who);
                }
            }
            What::Registered { registered: false, .. } => {
                registered.remove(line.who.as_str());
            }
            What::Valid { leadership, .. } if line.at >= since => {
                meet(Need::Leader(leadership.election.clone()), line.at);
            }
            _ => {}
        }
    }
    // Registered all the time: nothing had to come back.
    for who in registered {
        meet(Need::Registration(who.to_owned()), since.max(1));
    }
    met
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
