use super::check;
use crate::check::Troubles;
use crate::check::fixture::{fault, line};
use crate::history::{Line, MS, What};

/// A client that registers at 1 s; ttl and slack are a second each.
fn begun() -> Vec<Line> {
    let (ttl, slack) = (1000 * MS, 1000 * MS);
    vec![
        line(0, "c0.0", What::Ready { ttl, slack }),
        line(1000, "c0.0", What::Registered { registered: true }),
    ]
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
    let lines = [
        begun(),
        vec![killed(2000)],
        fault(0, 3000, 5500, "s0", "pause"),
        vec![listed(6000, &["c0.0"])],
    ];
    assert_eq!(violations(&lines.concat()), 0);
}

#[test]
fn a_live_member_that_is_missing_is_found() {
    assert_eq!(violations(&[begun(), vec![listed(9000, &["c0.0"])]].concat()), 0);
    assert_eq!(violations(&[begun(), vec![listed(9000, &[])]].concat()), 1);
}

#[test]
fn one_that_is_about_to_go_may_be_missing() {
    let gone = line(9100, "c0.0", What::Registered { registered: false });
    assert_eq!(violations(&[begun(), vec![listed(9000, &[]), gone]].concat()), 0);
}
