//! Whatever anybody saw, by whatever read or watch, was written by somebody, once; and what is gone was deleted.

use std::collections::BTreeMap;

use super::{Blame, Verdict};
use crate::history::{Call, Held, Line, Op, Outcome, What};

/// Somebody saw this entry.
struct Sight<'a> {
    at: u64,
    who: &'a str,
    key: &'a str,
    value: &'a str,
    version: &'a str,
    created: u64,
}

/// Somebody was told that the entry of this creation is gone.
struct Gone<'a> {
    at: u64,
    who: &'a str,
    key: &'a str,
    created: u64,
}

pub(super) fn check(name: &'static str, lines: &[Line], calls: &[Call], blame: Blame) -> Verdict {
    let mut verdict = Verdict::new(name);
    let sights = sights(lines, calls);
    let mut writes: BTreeMap<&str, &Call> = BTreeMap::new();
    for call in calls {
        if let Op::Create { value, .. } | Op::Update { value, .. } = &call.op {
            writes.insert(value, call);
        }
    }
    let mut versions: BTreeMap<(&str, &str), (&str, u64)> = BTreeMap::new();
    let mut values: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for sight in &sights {
        verdict.checked += 1;
        let (who, key, at) = (sight.who, sight.key, sight.at / 1_000_000);
        let mut wrong =
            |why: String| verdict.wrong(blame, format!("{who} saw {} in {key} at {at} ms: {why}", sight.value));
        match writes.get(sight.value) {
            None => wrong("nobody wrote it".into()),
            Some(write) if write.op.key() != key => wrong(format!("it was written elsewhere: {write:?}")),
            Some(write) if write.from > sight.at => wrong(format!("it was written later: {write:?}")),
            Some(write) if !may_have_happened(write) => wrong(format!("that write had failed: {write:?}")),
            Some(_) => {}
        }
        let (same, known) = (
            (sight.value, sight.created),
            versions
                .entry((key, sight.version))
                .or_insert((sight.value, sight.created)),
        );
        if *known != same {
            wrong(format!("its version {} was another entry's: {known:?}", sight.version));
        }
        let known = values.entry((key, sight.value)).or_insert(sight.version);
        if *known != sight.version {
            wrong(format!("it was written twice, as {known} and as {}", sight.version));
        }
    }
    let mut deletes: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        if let Op::Delete { .. } | Op::Abandon { .. } = call.op {
            deletes.entry(call.op.key()).or_default().push(call);
        }
    }
    for gone in gone(lines) {
        verdict.checked += 1;
        let deleted = deletes.get(gone.key).into_iter().flatten().any(|call| {
            call.from <= gone.at
                && match &call.op {
                    Op::Delete { expected, .. } => {
                        let of = expected
                            .as_deref()
                            .and_then(|version| versions.get(&(gone.key, version)));
                        may_have_happened(call) && of.is_none_or(|(_, created)| *created == gone.created)
                    }
                    Op::Abandon { .. } => true,
                    _ => false,
                }
        });
        if !deleted {
            let (who, key, at) = (gone.who, gone.key, gone.at / 1_000_000);
            verdict.wrong(
                blame,
                format!(
                    "{who} was told at {at} ms that {} of {key} is gone: nobody deleted it",
                    gone.created
                ),
            );
        }
    }
    verdict
}

/// Whether it was not told that it did not.
fn may_have_happened(call: &Call) -> bool {
    let ended = call.end.as_ref().map(|(_, outcome)| outcome);
    matches!(ended, None | Some(Outcome::Done { .. } | Outcome::Unknown { .. }))
}

fn sights<'a>(lines: &'a [Line], calls: &'a [Call]) -> Vec<Sight<'a>> {
    let sight = |at, who: &'a str, key: &'a str, held: &'a Held| Sight {
        at,
        who,
        key,
        value: &held.value,
        version: &held.version,
        created: held.created,
    };
    let mut sights = vec![];
    for call in calls {
        let key = call.op.key();
        match (&call.op, &call.end) {
            (_, Some((at, Outcome::Found { held: Some(held) } | Outcome::Taken { held }))) => {
                sights.push(sight(*at, &call.who, key, held));
            }
            (
                Op::Create { value, .. } | Op::Update { value, .. },
                Some((
                    at,
                    Outcome::Done {
                        made: Some((version, created)),
                    },
                )),
            ) => sights.push(Sight {
                at: *at,
                who: &call.who,
                key,
                value,
                version,
                created: *created,
            }),
            _ => {}
        }
    }
    for line in lines {
        if let What::Seen { seen, .. } = &line.what {
            for seen in seen {
                if let Some(held) = &seen.held {
                    sights.push(sight(line.at, &line.who, &seen.key, held));
                }
            }
        }
    }
    sights
}

/// What watches told to be gone: by a deletion, or by leaving it out of a whole state.
fn gone(lines: &[Line]) -> Vec<Gone<'_>> {
    let mut gone = vec![];
    let mut there: BTreeMap<(&str, u64), BTreeMap<&str, u64>> = BTreeMap::new();
    for line in lines {
        let What::Seen { watch, whole, seen } = &line.what else {
            continue;
        };
        let known = there.entry((&line.who, *watch)).or_default();
        let mut tell = |key, created| {
            gone.push(Gone {
                at: line.at,
                who: &line.who,
                key,
                created,
            });
        };
        if *whole {
            for (key, created) in std::mem::take(known) {
                // Another one in its place comes after a deletion as well.
                if !seen
                    .iter()
                    .any(|seen| seen.key == key && seen.held.is_some() && seen.created == created)
                {
                    tell(key, created);
                }
            }
        }
        for seen in seen {
            match &seen.held {
                Some(held) => {
                    if let Some(before) = known
                        .insert(&seen.key, held.created)
                        .filter(|before| *before < held.created)
                    {
                        tell(&seen.key, before);
                    }
                }
                None if *whole => {}
                None => {
                    known.remove(seen.key.as_str());
                    tell(&seen.key, seen.created);
                }
            }
        }
    }
    gone
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
