//! Every call ends by its deadline, whatever the store does.

use std::collections::BTreeMap;

use super::{Blame, Troubles, Verdict};
use crate::client::CALL_DEADLINE;
use crate::history::{Call, Line, MS, What};

/// What a busy machine may add.
const LATE: u64 = 1500 * MS;

pub(super) fn check(lines: &[Line], calls: &[Call], troubles: &Troubles) -> Verdict {
    let mut verdict = Verdict::new("deadlines");
    // Until when each client lived; who neither closed nor was killed lived to the end.
    let mut lived: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Closed => lived.insert(&line.who, (line.at, true)),
            What::Killed { client } => lived.insert(client, (line.at, false)),
            _ => None,
        };
    }
    let over = lines.last().map_or(0, |line| line.at);
    let deadline = u64::try_from(CALL_DEADLINE.as_nanos()).unwrap_or(u64::MAX);
    for call in calls {
        let (lived, closed) = lived.get(call.who.as_str()).copied().unwrap_or((over, false));
        let (at, how) = match &call.end {
            Some((at, outcome)) => (*at, Some(outcome)),
            None => (lived, None),
        };
        verdict.checked += 1;
        let took = at.saturating_sub(call.from);
        let late = took > deadline + LATE && !troubles.stood_still(&call.who, call.from, at);
        if how.is_none() && (closed || late) {
            verdict.wrong(Blame::Ours, format!("never ended, in {} ms: {call:?}", took / MS));
        } else if late {
            let took = took / MS;
            verdict.wrong(
                Blame::Ours,
                format!("{took} ms for {:?} by {}: {how:?}", call.op, call.who),
            );
        }
    }
    verdict
}

#[cfg(test)]
#[path = "deadlines_tests.rs"]
mod tests;
