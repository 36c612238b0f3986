//! No ghost after ttl + slack, no live member missing.

use std::collections::BTreeMap;

use super::{Blame, Troubles, Verdict};
use crate::history::{Line, MS, What};

/// For a busy machine, and for the reader's own way to the store.
const GRACE: u64 = 1500 * MS;
/// A registration that is reported now may have been lost a moment ago.
const SETTLED: u64 = 500 * MS;

pub(super) fn check(lines: &[Line], troubles: &Troubles) -> Verdict {
    let mut verdict = Verdict::new("registry");
    let mut life = 0;
    let mut dead: BTreeMap<&str, u64> = BTreeMap::new();
    // Since when each live client says that it is registered without a break.
    let mut registered: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        match &line.what {
            What::Ready { ttl, slack } => life = life.max(ttl + slack),
            What::Killed { client } => {
                dead.insert(client, line.at);
                registered.remove(client.as_str());
            }
            What::Closed => {
                dead.insert(&line.who, line.at);
                registered.remove(line.who.as_str());
            }
            What::Registered { registered: true } => {
                registered.entry(&line.who).or_insert(line.at);
            }
            What::Registered { registered: false } => {
                registered.remove(line.who.as_str());
            }
            What::Listed { from, owners } => {
                verdict.checked += 1;
                let quiet = troubles.quiet_since(line.at);
                for owner in owners {
                    let died = dead.get(owner.as_str()).copied();
                    if let Some(died) = died.filter(|died| *from > quiet.max(*died) + life + GRACE) {
                        let since = (from - died) / MS;
                        verdict.wrong(
                            Blame::Ours,
                            format!("ghost: {owner} is listed {since} ms after its end"),
                        );
                    }
                }
                if line.at < quiet + life + GRACE {
                    continue;
                }
                for (who, since) in &registered {
                    let settled = since + SETTLED < *from && stays(&lines[number..], who, line.at + SETTLED);
                    if settled && !owners.iter().any(|owner| owner == who) {
                        verdict.wrong(
                            Blame::Ours,
                            format!("missing: {who} is registered and not listed at {} ms", line.at / MS),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    verdict
}

/// Whether nothing ends this registration until then.
fn stays(lines: &[Line], who: &str, until: u64) -> bool {
    let soon = lines.iter().take_while(|line| line.at <= until);
    !soon.into_iter().any(|line| match &line.what {
        What::Registered { registered: false } | What::Closed => line.who == who,
        What::Killed { client } => client == who,
        _ => false,
    })
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
