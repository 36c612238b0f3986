//! Watches and reads of one client never go back, and in the end a watch knows what is there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Blame, Verdict};
use crate::history::{Call, Held, Line, Op, Outcome, Value, What};

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

    fn rises(&mut self, created: u64, n: u64) {
        if (created, n) > (self.created, self.n) {
            *self = Known {
                created,
                n,
                gone: false,
                held: None,
            };
        }
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

/// What one watch is of, and what it has told.
#[derive(Debug, Default)]
struct Told<'a> {
    target: Option<(&'a str, bool)>,
    known: BTreeMap<&'a str, Known>,
}

impl Told<'_> {
    fn covers(&self, key: &str) -> bool {
        self.target.is_some_and(|(target, children)| match children {
            true => key.rsplit_once('/').is_some_and(|(parent, _)| parent == target),
            false => key == target,
        })
    }
}

pub(super) fn check(name: &'static str, lines: &[Line], calls: &[Call], blame: Blame) -> Verdict {
    let mut verdict = Verdict::new(name);
    let mut watches: BTreeMap<(&str, u64), Told> = BTreeMap::new();
    let mut finals: BTreeMap<&str, Option<&Held>> = BTreeMap::new();
    let mut closed = BTreeSet::new();
    for line in lines {
        match &line.what {
            What::Watching {
                watch,
                target,
                children,
            } => watches.entry((&line.who, *watch)).or_default().target = Some((target, *children)),
            What::Seen { watch, whole, seen } => {
                verdict.checked += 1;
                let told = watches.entry((&line.who, *watch)).or_default();
                if let Some(other) = seen.iter().find(|seen| !told.covers(&seen.key)) {
                    verdict.wrong(blame, format!("{} watch {watch} tells of {}", line.who, other.key));
                }
                let known = &mut told.known;
                let mut judge = |result: Result<(), String>, key: &str| {
                    if let Err(why) = result {
                        let at = line.at / 1_000_000;
                        verdict.wrong(blame, format!("{} watch {watch} of {key} at {at} ms: {why}", line.who));
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
    for ((who, watch), told) in &watches {
        // Who was killed may have missed the rest.
        if !closed.contains(who) {
            continue;
        }
        for (key, held) in finals.iter().filter(|(key, _)| told.covers(key)) {
            verdict.checked += 1;
            let known = told.known.get(key).and_then(|known| known.held.as_ref());
            if known != *held {
                verdict.wrong(
                    blame,
                    format!("{who} watch {watch} of {key} ends with {known:?}, but there is {held:?}"),
                );
            }
        }
    }
    reads(calls, blame, &mut verdict);
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
    let ends = check("watches", &lines, &[], Blame::Ours).violations;
    !ends.iter().any(|violation| violation.text.contains("ends with"))
}

/// The plain reads of one client never go back, and know its own writes and whatever it was told.
fn reads(calls: &[Call], blame: Blame, verdict: &mut Verdict) {
    let created = creations(calls);
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
            if matches!(call.op, Op::Get { .. } | Op::GetLatest { .. }) {
                at_call.insert(number, floor.clone());
            }
            continue;
        }
        match (&call.op, call.end.as_ref().map(|(_, outcome)| outcome)) {
            (Op::Get { key } | Op::GetLatest { key }, Some(Outcome::Found { held })) => {
                verdict.checked += 1;
                let mut seen = at_call.remove(&number).unwrap_or_default();
                match held {
                    Some(held) => {
                        if let Err(why) = seen.sees(held) {
                            verdict.wrong(blame, format!("{} read {key}: {why}", call.who));
                        }
                        floor.rises(held.created, held.value().n);
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
            ) => floor.rises(*created, value.parse::<Value>().unwrap_or_default().n),
            (_, Some(Outcome::Taken { held })) => floor.rises(held.created, held.value().n),
            // What it deleted is gone, unless a newer one is there.
            (
                Op::Delete {
                    key,
                    expected: Some(version),
                },
                Some(Outcome::Done { .. }),
            ) => {
                if let Some(created) = created.get(&(key.as_str(), version.as_str())) {
                    floor.rises(*created, 0);
                    floor.gone |= floor.created == *created;
                }
            }
            _ => {}
        }
    }
}

/// Which creation each version is of.
fn creations(calls: &[Call]) -> BTreeMap<(&str, &str), u64> {
    let told = calls
        .iter()
        .filter_map(|call| match call.end.as_ref().map(|(_, outcome)| outcome) {
            Some(Outcome::Found { held: Some(held) } | Outcome::Taken { held }) => {
                Some(((call.op.key(), held.version.as_str()), held.created))
            }
            Some(Outcome::Done {
                made: Some((version, created)),
            }) => Some(((call.op.key(), version.as_str()), *created)),
            _ => None,
        });
    told.collect()
}

#[cfg(test)]
#[path = "watches_tests.rs"]
mod tests;
