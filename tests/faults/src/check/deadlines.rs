//! Every call ends by its deadline, whatever the store does.

use std::collections::BTreeSet;

use super::{Blame, Troubles, Verdict};
use crate::client::CALL_DEADLINE;
use crate::history::{Call, Line, MS, What};

/// What a busy machine may add.
const LATE: u64 = 1500 * MS;

pub(super) fn check(lines: &[Line], calls: &[Call], troubles: &Troubles) -> Verdict {
    let mut verdict = Verdict::new("deadlines");
    let closed = lines.iter().filter(|line| line.what == What::Closed);
    let closed: BTreeSet<&str> = closed.map(|line| line.who.as_str()).collect();
    let deadline = u64::try_from(CALL_DEADLINE.as_nanos()).unwrap_or(u64::MAX);
    for call in calls {
        let Some((at, outcome)) = &call.end else {
            if closed.contains(call.who.as_str()) {
                verdict.wrong(Blame::Ours, format!("never ended: {call:?}"));
            }
            continue;
        };
        verdict.checked += 1;
        let client = call.who.split('.').next().unwrap_or_default();
        let stood_still = |number: &super::trouble::Span| number.target == client && number.name.contains("pause");
        let excused = troubles
            .spans
            .iter()
            .any(|span| stood_still(span) && span.from <= *at && span.to >= call.from);
        if at - call.from > deadline + LATE && !excused {
            let took = (at - call.from) / MS;
            verdict.wrong(
                Blame::Ours,
                format!("{took} ms for {:?} by {}: {outcome:?}", call.op, call.who),
            );
        }
    }
    verdict
}

#[cfg(test)]
#[path = "deadlines_tests.rs"]
mod tests;
