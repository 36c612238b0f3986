//! Watches and reads of one client never go back, and in the end a watch knows what is there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Blame, Verdict};
use crate::history::{Call, Held, Line, Op, Outcome, What};

/// What is known of a key: how far it has come, and whether it was seen to be gone since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    created: u64,
    n: u64,
    gone: bool,
    held: Option<Held>,
}

impl Known {
    fn sees(&mut self, held: &Held) -> Result<(), String> {
        let (created, n) = (held.created, held.value().n);
        let older = (created, n) < (self.created, self.n);
        if older || (self.gone && created <= self.created) {
            return Err(format!("after {self:?} it showed {held:?}"));
        }
        *self = Known {
            created,
            n,
            gone: false,
            held: Some(held.clone()),
        };
        Ok(())
    }

    fn misses(&mut self, created: u64) -> Result<(), String> {
        if created < self.created {
            return Err(format!("after {self:?} it showed the deletion of {created}"));
        }
        self.created = created;
        self.gone = true;
        self.held = None;
        Ok(())
    }
}

pub(super) fn check(lines: &[Line], calls: &[Call]) -> Verdict {
    let mut verdict = Verdict::new("watches");
    let mut watches: BTreeMap<(&str, u64), BTreeMap<&str, Known>> = BTreeMap::new();
    let mut finals: BTreeMap<&str, Option<&Held>> = BTreeMap::new();
    let mut closed = BTreeSet::new();
    for line in lines {
        match &line.what {
            What::Seen { watch, whole, seen } => {
                verdict.checked += 1;
                let known = watches.entry((&line.who, *watch)).or_default();
                let mut judge = |result: Result<(), String>, key: &str| {
                    if let Err(why) = result {
                        let at = line.at / 1_000_000;
                        verdict.wrong(
                            Blame::Ours,
                            format!("{} watch {watch} of {key} at {at} ms: {why}", line.who),
                        );
                    }
                };
                if *whole {
                    for (key, known) in known.iter_mut() {
                        if !seen.iter().any(|seen| seen.key == *key && seen.held.is_some()) {
                            judge(known.misses(known.created), key);
                        }
                    }
                }
                for seen in seen {
                    let known = known.entry(&seen.key).or_default();
                    match &seen.held {
                        Some(held) => judge(known.sees(held), &seen.key),
                        None if *whole => known.gone = true,
                        None => judge(known.misses(seen.created), &seen.key),
                    }
                }
            }
            What::Final { key, held } => {
                finals.insert(key, held.as_ref());
            }
            // Who closed before the end saw only what was there before.
            What::Closed if !finals.is_empty() => {
                closed.insert(line.who.as_str());
            }
            _ => {}
        }
    }
    for ((who, watch), known) in &watches {
        // Who was killed may have missed the rest.
        if !closed.contains(who) {
            continue;
        }
        for (key, held) in &finals {
            let Some(known) = known.get(key) else { continue };
            verdict.checked += 1;
            if known.held.as_ref() != *held {
                let known = &known.held;
                verdict.wrong(
                    Blame::Ours,
                    format!("{who} watch {watch} of {key} ends with {known:?}, but there is {held:?}"),
                );
            }
        }
    }
    reads(calls, &mut verdict);
    verdict
}

/// Whether what the watches told last is what is there.
pub fn watches_tell(lines: &[Line], finals: &[(String, Option<Held>)]) -> bool {
    // As if everybody ended here.
    let mut lines = lines.to_vec();
    for (key, held) in finals {
        lines.push(Line {
            at: u64::MAX,
            who: String::new(),
            what: What::Final {
                key: key.clone(),
                held: held.clone(),
            },
        });
    }
    let whos: BTreeSet<String> = lines.iter().map(|line| line.who.clone()).collect();
    let killed: BTreeSet<String> = lines
        .iter()
        .filter_map(|line| match &line.what {
            What::Killed { client } => Some(client.clone()),
            What::Closed => Some(line.who.clone()),
            _ => None,
        })
        .collect();
    for who in whos.difference(&killed) {
        lines.push(Line {
            at: u64::MAX,
            who: who.clone(),
            what: What::Closed,
        });
    }
    lines.retain(|line| !matches!(line.what, What::Closed) || !killed.contains(&line.who));
    let ends = check(&lines, &[]).violations;
    !ends.iter().any(|violation| violation.text.contains("ends with"))
}

/// The plain reads of one client never go back, and know its own writes.
fn reads(calls: &[Call], verdict: &mut Verdict) {
    // Ends before beginnings of the same moment would be too strict: what touches is at once.
    let mut moments = vec![];
    for (number, call) in calls.iter().enumerate() {
        moments.push((call.from, 0, number));
        if let Some((at, _)) = &call.end {
            moments.push((*at, 1, number));
        }
    }
    moments.sort_unstable();
    let mut floors: BTreeMap<(&str, &str), Known> = BTreeMap::new();
    let mut at_call: BTreeMap<usize, Known> = BTreeMap::new();
    for (_, ends, number) in moments {
        let call = &calls[number];
        let floor = floors.entry((&call.who, call.op.key())).or_default();
        if ends == 0 {
            if matches!(call.op, Op::Get { .. }) {
                at_call.insert(number, floor.clone());
            }
            continue;
        }
        let raise = |floor: &mut Known, created: u64, n: u64| {
            if (created, n) > (floor.created, floor.n) {
                *floor = Known {
                    created,
                    n,
                    gone: false,
                    held: None,
                };
            }
        };
        match (&call.op, call.end.as_ref().map(|(_, outcome)| outcome)) {
            (Op::Get { key }, Some(Outcome::Found { held })) => {
                verdict.checked += 1;
                let mut seen = at_call.remove(&number).unwrap_or_default();
                match held {
                    Some(held) => {
                        if let Err(why) = seen.sees(held) {
                            verdict.wrong(Blame::Ours, format!("{} read {key}: {why}", call.who));
                        }
                        raise(floor, held.created, held.value().n);
                    }
                    None if seen.created == floor.created => floor.gone = true,
                    None => {}
                }
            }
            (
                Op::Create { value, .. } | Op::Update { value, .. },
                Some(Outcome::Done {
                    made: Some((_, created)),
                }),
            ) => {
                let n = value.parse::<crate::history::Value>().unwrap_or_default().n;
                raise(floor, *created, n);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "watches_tests.rs"]
mod tests;
