//! Sequential entries: created in the order of their calls, and never twice alike.

use std::collections::BTreeSet;

use super::{Blame, Verdict};
use crate::history::{Call, Op, Outcome};

pub(super) fn check(name: &'static str, calls: &[Call], blame: Blame) -> Verdict {
    let mut verdict = Verdict::new(name);
    let mut moments = vec![];
    for call in calls {
        let (
            Op::Sequential { .. },
            Some((
                at,
                Outcome::Done {
                    made: Some((_, created)),
                },
            )),
        ) = (&call.op, &call.end)
        else {
            continue;
        };
        verdict.checked += 1;
        moments.push((call.from, 0, *created, call));
        moments.push((*at, 1, *created, call));
    }
    moments.sort_by_key(|(at, ends, created, _)| (*at, *ends, *created));
    let (mut highest, mut all) = (0, BTreeSet::new());
    for (_, ends, created, call) in moments {
        if ends == 1 {
            highest = highest.max(created);
            if !all.insert(created) {
                verdict.wrong(blame, format!("twice the same `created`: {call:?}"));
            }
        } else if created <= highest {
            verdict.wrong(
                blame,
                format!("created {created} although {highest} had been answered before it was asked for: {call:?}"),
            );
        }
    }
    verdict
}

#[cfg(test)]
#[path = "sequences_tests.rs"]
mod tests;
