//! A fenced register never takes an older token after a newer one, whoever believed to lead. No exception.

use std::collections::BTreeMap;

use super::{Blame, Verdict};
use crate::history::{Call, Line, Op, Outcome, Value, What};

pub(super) fn check(lines: &[Line], calls: &[Call]) -> Verdict {
    let mut verdict = Verdict::new("fenced register");
    // Every value that was ever there has a number of its own, one more than the value before; an entry made anew comes
    // after the one before.
    let mut values: BTreeMap<String, BTreeMap<(u64, u64), Value>> = BTreeMap::new();
    let mut twice = vec![];
    let mut saw = |key: &str, created: u64, text: &str| {
        if let (true, Ok(value)) = (is_fenced(key), text.parse::<Value>()) {
            let values = values.entry(key.to_owned()).or_default();
            if let Some(other) = values.insert((created, value.n), value).filter(|other| *other != value) {
                twice.push(format!(
                    "{key}: {value:?} and {other:?} were both taken after the same one"
                ));
            }
        }
    };
    for call in calls {
        match (&call.op, call.end.as_ref().map(|(_, outcome)| outcome)) {
            (_, Some(Outcome::Found { held: Some(held) } | Outcome::Taken { held })) => {
                saw(call.op.key(), held.created, &held.value);
            }
            (
                Op::Create { key, value } | Op::Update { key, value, .. },
                Some(Outcome::Done {
                    made: Some((_, created)),
                }),
            ) => saw(key, *created, value),
            _ => {}
        }
    }
    for line in lines {
        if let What::Final { key, held: Some(held) } = &line.what {
            saw(key, held.created, &held.value);
        }
    }
    for text in twice {
        verdict.wrong(Blame::Ours, text);
    }
    for (key, values) in &values {
        verdict.checked += values.len();
        let values: Vec<&Value> = values.values().collect();
        for pair in values.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if after.token < before.token {
                verdict.wrong(Blame::Ours, format!("{key}: {after:?} was taken after {before:?}"));
            }
        }
    }
    verdict
}

/// Whether the key is one of those that leaders write.
fn is_fenced(key: &str) -> bool {
    key.starts_with("/fenced/")
}

#[cfg(test)]
#[path = "fenced_tests.rs"]
mod tests;
