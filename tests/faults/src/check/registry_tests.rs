use super::check;
use crate::check::fixture::{fault, line};
use crate::check::{Blame, Troubles};
use crate::history::{Line, MS, Trouble, What};

fn registered(at: u64, until: u64) -> Line {
    let (lease, until) = (7, until * MS);
    let registered = What::Registered {
        registered: true,
        lease,
        until,
    };
    line(at, "c0.0", registered)
}

fn not_registered(at: u64) -> Line {
    let (lease, until) = (0, 0);
    let registered = What::Registered {
        registered: false,
        lease,
        until,
    };
    line(at, "c0.0", registered)
}

/// A client that registers at 1 s, and has proof of that for a second; ttl and slack are a second each.
fn begun() -> Vec<Line> {
    let (ttl, slack) = (1000 * MS, 1000 * MS);
    vec![line(0, "c0.0", What::Ready { ttl, slack }), registered(1000, 2000)]
}

fn listed(at: u64, owners: &[&str]) -> Line {
    let owners = owners.iter().map(|owner| (*owner).to_owned()).collect();
    line(at, "judge", What::Listed { from: at * MS, owners })
}

fn killed(at: u64) -> Line {
    let client = "c0.0".into();
    line(at, "nemesis", What::Killed { client })
}

fn violations(lines: &[Line]) -> usize {
    check(lines, &Troubles::of(lines)).violations.len()
}

#[test]
fn a_ghost_is_found_after_ttl_and_slack() {
    let listed = |at| [begun(), vec![killed(2000), listed(at, &["c0.0"])]].concat();
    assert_eq!(violations(&listed(5000)), 0);
    assert_eq!(violations(&listed(6000)), 1);
}

#[test]
fn while_the_store_is_in_trouble_a_dead_one_may_stay() {
    let lines = |trouble| {
        let mut fault = fault(0, 3000, 5500, "s0", "pause");
        if let What::Fault { trouble: what, .. } = &mut fault[0].what {
            *what = trouble;
        }
        [begun(), vec![killed(2000)], fault, vec![listed(6000, &["c0.0"])]].concat()
    };
    assert_eq!(violations(&lines(Trouble::Servers)), 0);
    // The trouble of another client is none of its.
    assert_eq!(violations(&lines(Trouble::Client)), 1);
}

#[test]
fn a_live_member_that_is_missing_is_found_also_during_a_fault() {
    let trouble = || fault(0, 100, 9000, "s0", "pause");
    let missing = |at| [begun(), trouble(), vec![listed(at, &[])]].concat();
    assert_eq!(
        violations(&[begun(), trouble(), vec![listed(1500, &["c0.0"])]].concat()),
        0
    );
    assert_eq!(violations(&missing(1500)), 1);
    // It has proof until 2 s.
    assert_eq!(violations(&missing(2001)), 0);
    let renewed = [begun(), vec![registered(1900, 2900), listed(2001, &[])]].concat();
    assert_eq!(violations(&renewed), 1);
}

#[test]
fn one_that_is_not_registered_may_be_missing() {
    let lines = [begun(), vec![not_registered(1400), listed(1500, &[])]].concat();
    assert_eq!(violations(&lines), 0);
}

#[test]
fn a_list_that_began_before_the_registration_may_miss_it() {
    let mut list = listed(1500, &[]);
    if let What::Listed { from, .. } = &mut list.what {
        *from = 900 * MS;
    }
    assert_eq!(violations(&[begun(), vec![list]].concat()), 0);
}

#[test]
fn one_whose_lease_a_third_party_revoked_may_be_missing() {
    let revoked = |lease| line(1400, "nemesis", What::Revoked { lease });
    let missing = |lease| [begun(), vec![revoked(lease), listed(1500, &[])]].concat();
    assert_eq!(violations(&missing(7)), 0);
    assert_eq!(violations(&missing(8)), 1);
}

#[test]
fn a_missing_one_is_the_stores_fault_if_the_bare_client_lost_a_proven_lease() {
    let (lease, until) = (77, 4000 * MS);
    let early = line(1450, "witness", What::EndedEarly { lease, until });
    let lines = [begun(), vec![early, listed(1500, &[])]].concat();
    let found = check(&lines, &Troubles::of(&lines)).violations;
    assert_eq!(
        found.iter().map(|found| found.blame).collect::<Vec<_>>(),
        [Blame::Store]
    );
}
