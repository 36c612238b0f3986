use super::check;
use crate::check::Troubles;
use crate::check::fixture::{call, fault, found, latest, line};
use crate::history::{Call, Line, What};

fn violations(lines: &[Line], call: Call) -> usize {
    check(lines, &[call], &Troubles::of(lines)).violations.len()
}

#[test]
fn a_call_that_is_late_is_found_unless_its_client_stood_still() {
    assert_eq!(violations(&[], call("c0.0", 0, 1000, latest(), found(1))), 0);
    let late = call("c0.0", 0, 60_000, latest(), found(1));
    assert_eq!(violations(&[], late.clone()), 1);
    assert_eq!(violations(&fault(0, 5, 9000, "c1", "pause"), late.clone()), 1);
    assert_eq!(violations(&fault(0, 5, 9000, "c0", "pause"), late), 0);
}

#[test]
fn a_call_that_never_ends_is_found() {
    let mut endless = call("c0.0", 0, 1, latest(), found(1));
    endless.end = None;
    assert_eq!(violations(&[], endless.clone()), 0);
    assert_eq!(violations(&[line(9, "c0.0", What::Closed)], endless.clone()), 1);
    // Neither the one who was killed at last, nor the one who just went on.
    let killed = |at| {
        let client = "c0.0".into();
        line(at, "nemesis", What::Killed { client })
    };
    assert_eq!(violations(&[killed(900)], endless.clone()), 0);
    assert_eq!(violations(&[killed(9000)], endless.clone()), 1);
    assert_eq!(violations(&[line(9000, "judge", What::Quiet)], endless), 1);
}
