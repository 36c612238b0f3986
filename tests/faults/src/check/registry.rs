//! No ghost after ttl + slack, no live member missing.

use std::collections::BTreeMap;

use super::{Blame, Evidence, Troubles, Verdict};
use crate::history::{Line, MS, What};

/// For a busy machine.
const GRACE: u64 = 1500 * MS;

/// That somebody is registered, as he said so himself.
struct Claim {
    since: u64,
    /// The end of the lease that he has proof of: until then the entry is there, whatever becomes of him.
    until: u64,
    lease: u64,
}

pub(super) fn check(lines: &[Line], troubles: &Troubles) -> Verdict {
    let mut verdict = Verdict::new("registry");
    let evidence = Evidence::of(lines);
    let mut life = 0;
    let mut dead: BTreeMap<&str, u64> = BTreeMap::new();
    let mut claims: BTreeMap<&str, Claim> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Ready { ttl, slack } => life = life.max(ttl + slack),
            What::Killed { client } => {
                dead.insert(client, line.at);
                // Whoever comes in its place removes what it finds.
                claims.remove(client.as_str());
            }
            What::Closed => {
                dead.insert(&line.who, line.at);
                claims.remove(line.who.as_str());
            }
            What::Registered {
                registered: true,
                lease,
                until,
            } => {
                let (since, lease, until) = (line.at, *lease, *until);
                let claim = claims.entry(&line.who).or_insert(Claim { since, until, lease });
                if claim.lease != lease || claim.until < since {
                    *claim = Claim { since, until, lease };
                }
                claim.until = claim.until.max(until);
            }
            What::Registered { registered: false, .. } => {
                claims.remove(line.who.as_str());
            }
            What::Listed { from, owners } => {
                let quiet = troubles.leases_kept_alive_until(line.at);
                for (owner, died) in &dead {
                    if *from <= quiet.max(*died) + life + GRACE {
                        continue;
                    }
                    verdict.checked += 1;
                    if owners.iter().any(|listed| listed == owner) {
                        let since = (from - died) / MS;
                        verdict.wrong(
                            Blame::Ours,
                            format!("ghost: {owner} is listed {since} ms after its end"),
                        );
                    }
                }
                for (who, claim) in &claims {
                    let all_the_time = claim.since <= *from && line.at <= claim.until;
                    if !all_the_time || evidence.revoked(claim.lease).is_some_and(|at| at <= line.at) {
                        continue;
                    }
                    verdict.checked += 1;
                    if !owners.iter().any(|owner| owner == who) {
                        let early = evidence.ended_early(line.at.saturating_sub(life), line.at);
                        let blame = if early { Blame::Store } else { Blame::Ours };
                        verdict.wrong(
                            blame,
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

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
