//! Linearizability of each key, by porcupine's algorithm.

use std::collections::BTreeMap;
use std::time::Duration;

use porcupine_rs::{CheckResult, Operation, check_operations_timeout};

use super::register::{Fate, Named, OVER, Register, Sight, Step, operation, over};
use super::{Blame, Verdict};
use crate::history::{Call, Held, Line, Op, Outcome, Value, What};

/// A key whose order takes longer to find counts as wrong: it was not shown to be right.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn check(name: &'static str, calls: &[Call], blame: Blame) -> Verdict {
    let mut verdict = Verdict::new(name);
    let mut keys: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        if !matches!(call.op, Op::Sequential { .. }) {
            keys.entry(call.op.key()).or_default().push(call);
        }
    }
    for (key, calls) in keys {
        verdict.checked += calls.len();
        match linearizable(&calls) {
            Order::Found => {}
            Order::None(why) => verdict.wrong(blame, format!("{key}: {why}")),
            Order::Undecided(why) => verdict.undecided.push(format!("{key}: {why}")),
        }
    }
    verdict
}

/// What was there in the end, as reads of the judge.
pub(super) fn finals(lines: &[Line]) -> Vec<Call> {
    let quiet = lines.iter().find(|line| line.what == What::Quiet);
    let from = quiet.map_or(0, |line| line.at);
    let finals = lines.iter().filter_map(|line| match &line.what {
        What::Final { key, held } => Some(Call {
            who: line.who.clone(),
            from,
            end: Some((line.at, Outcome::Found { held: held.clone() })),
            op: Op::GetLatest { key: key.clone() },
        }),
        _ => None,
    });
    finals.collect()
}

/// What the search for an order came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// There is one.
    Found,
    /// There is none; what cannot be explained.
    None(String),
    /// The search did not end in time: many writes of unknown outcome at once can have happened in very many orders.
    Undecided(String),
}

/// Whether the calls on one key can have happened one after the other, each between its beginning and its end; those of
/// unknown outcome at any later moment or never, those that failed not at all.
pub fn linearizable(calls: &[&Call]) -> Order {
    let steps = Names::default().steps(calls);
    match ordered(&steps) {
        CheckResult::Ok => Order::Found,
        CheckResult::Unknown => Order::Undecided(format!("{} operations, no end in {PATIENCE:?}", steps.len())),
        CheckResult::Illegal => Order::None(blame_one(calls, &steps)),
    }
}

fn ordered(steps: &[Operation<Register>]) -> CheckResult {
    check_operations_timeout(&[steps, &[over()]].concat(), PATIENCE)
}

/// The first return after which there is no order any more, and what was under way then.
fn blame_one(calls: &[&Call], steps: &[Operation<Register>]) -> String {
    let mut ends: Vec<i64> = steps
        .iter()
        .map(|step| step.return_time)
        .filter(|end| *end < OVER)
        .collect();
    ends.sort_unstable();
    let (mut good, mut bad) = (0, ends.len());
    while good < bad {
        let middle = usize::midpoint(good, bad);
        let until = ends.get(middle).copied().unwrap_or(OVER);
        match ordered(&before(steps, until)) {
            CheckResult::Ok => good = middle + 1,
            _ => bad = middle,
        }
    }
    let end = ends.get(good).copied().unwrap_or(OVER);
    let around = calls.iter().filter(|call| {
        let returned = match &call.end {
            // It may have happened at any later moment.
            None | Some((_, Outcome::Unknown { .. })) => OVER,
            Some((at, _)) => signed(*at),
        };
        signed(call.from) <= end && returned >= end - 300_000_000
    });
    let around: Vec<String> = around.take(48).map(|call| format!("{call:?}")).collect();
    format!(
        "{} operations, no order from {} ms on; around it:\n  {}",
        steps.len(),
        end / 1_000_000,
        around.join("\n  ")
    )
}

/// The history as it was seen at `until`.
fn before(steps: &[Operation<Register>], until: i64) -> Vec<Operation<Register>> {
    let seen = steps.iter().filter(|step| step.call_time <= until);
    seen.filter_map(|step| {
        if step.return_time <= until || step.return_time > OVER {
            return Some(step.clone());
        }
        let unfinished = step.op.unfinished()?;
        Some(operation(step.call_time, i64::MAX, unfinished))
    })
    .collect()
}

fn signed(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(OVER - 1)
}

/// Versions by number, and the values that they name.
#[derive(Default)]
struct Names {
    numbers: BTreeMap<String, u64>,
    uids: BTreeMap<u64, u64>,
}

impl Names {
    fn number(&mut self, version: &str) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry(version.to_owned()).or_insert(next)
    }

    fn named(&mut self, version: &str) -> Named {
        let version = self.number(version);
        let uid = self.uids.get(&version).copied();
        Named { version, uid }
    }

    /// Plain reads may be old, so they are no steps; but what they saw was there once.
    fn learn(&mut self, calls: &[&Call]) {
        for call in calls {
            let (version, uid) = match (&call.op, call.end.as_ref().map(|(_, outcome)| outcome)) {
                (_, Some(Outcome::Found { held: Some(held) } | Outcome::Taken { held })) => {
                    (&held.version, held.value().uid)
                }
                (
                    Op::Create { value, .. } | Op::Update { value, .. },
                    Some(Outcome::Done {
                        made: Some((version, _)),
                    }),
                ) => (version, uid(value)),
                _ => continue,
            };
            let version = self.number(version);
            self.uids.insert(version, uid);
        }
    }

    fn sight(&mut self, held: &Held) -> Sight {
        Sight {
            uid: held.value().uid,
            version: self.number(&held.version),
            created: held.created,
        }
    }

    fn steps(mut self, calls: &[&Call]) -> Vec<Operation<Register>> {
        self.learn(calls);
        // Until when a create may have happened that was abandoned.
        let mut abandoned = BTreeMap::new();
        for call in calls {
            if let (Op::Abandon { value, .. }, Some((at, Outcome::Done { .. }))) = (&call.op, &call.end) {
                abandoned.insert(uid(value), signed(*at));
            }
        }
        calls
            .iter()
            .filter_map(|call| {
                let (mut end, step) = match &call.end {
                    Some((at, outcome)) => (signed(*at), self.step(&call.op, outcome)?),
                    None => (i64::MAX, self.step(&call.op, &unknown())?),
                };
                let step = match step {
                    Step::Create {
                        uid,
                        result: Fate::Unknown,
                    } if abandoned.contains_key(&uid) => {
                        end = abandoned[&uid];
                        Step::Create {
                            uid,
                            result: Fate::Abandoned,
                        }
                    }
                    step if step.unfinished().as_ref() == Some(&step) => {
                        end = i64::MAX;
                        step
                    }
                    step => step,
                };
                Some(operation(signed(call.from), end, step))
            })
            .collect()
    }

    /// What the call was, or nothing if it changed and told nothing.
    fn step(&mut self, op: &Op, outcome: &Outcome) -> Option<Step> {
        let known = match outcome {
            _ if matches!(op, Op::Get { .. }) => return None,
            Outcome::Refused { .. } | Outcome::NotSent { .. } => return None,
            Outcome::Found { held } => return Some(Step::Saw(held.as_ref().map(|held| self.sight(held)))),
            Outcome::Taken { held } => return Some(Step::Saw(Some(self.sight(held)))),
            Outcome::Missing => return Some(Step::Saw(None)),
            Outcome::Mismatch { version } => {
                let (Op::Update { expected, .. } | Op::Delete { expected, .. }) = op else {
                    return None;
                };
                return Some(Step::NotThere {
                    expected: self.named(expected.as_deref()?),
                    now: version.as_ref().map(|version| self.named(version)),
                });
            }
            Outcome::Done { .. } => true,
            Outcome::Unknown { .. } => false,
        };
        let result = match outcome {
            Outcome::Done {
                made: Some((version, created)),
            } => Fate::Happened {
                version: self.number(version),
                created: *created,
            },
            _ => Fate::Unknown,
        };
        match op {
            Op::Create { value, .. } => Some(Step::Create {
                uid: uid(value),
                result,
            }),
            Op::Update { value, expected, .. } => Some(Step::Update {
                uid: uid(value),
                expected: expected.as_ref().map(|version| self.named(version)),
                result,
            }),
            Op::Delete { expected, .. } => Some(Step::Delete {
                expected: expected.as_ref().map(|version| self.named(version)),
                known,
            }),
            Op::Abandon { value, .. } => Some(Step::Abandon { uid: uid(value), known }),
            Op::GetLatest { .. } | Op::Get { .. } | Op::Sequential { .. } => None,
        }
    }
}

fn uid(value: &str) -> u64 {
    value.parse::<Value>().unwrap_or_default().uid
}

fn unknown() -> Outcome {
    Outcome::Unknown { why: String::new() }
}

#[cfg(test)]
#[path = "registers_tests.rs"]
mod tests;
