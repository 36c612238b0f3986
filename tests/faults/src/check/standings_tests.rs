use super::check;
use crate::check::fixture::line;
use crate::history::{Line, MS, What};

fn entered(at: u64, created: u64, until: u64) -> Line {
    let entered = What::Entered {
        key: format!("/queue/{created}"),
        created,
        lease: created * 10,
        until: until * MS,
    };
    line(at, "c0.0", entered)
}

/// Asked at 50, answered at 60.
fn stood(created: u64, own: Option<u64>, predecessor: Option<u64>) -> Line {
    let stood = What::Stood {
        from: 50 * MS,
        created,
        own,
        predecessor: predecessor.map(|created| format!("/queue/{created}")),
    };
    line(60, "c0.0", stood)
}

fn found(lines: &[Line]) -> Vec<String> {
    let mut lines = lines.to_vec();
    lines.sort_by_key(|line| line.at);
    let found = check(&lines).violations;
    found.into_iter().map(|violation| violation.text).collect()
}

fn wrong(lines: &[Line], with: &str) {
    let found = found(lines);
    assert!(found.len() == 1 && found[0].contains(with), "{found:?}");
}

#[test]
fn the_one_immediately_before_is_right() {
    let three = [entered(1, 5, 900), entered(2, 6, 900), entered(3, 7, 900)];
    let right = |stood| assert_eq!(found(&[&three[..], &[stood]].concat()), Vec::<String>::new());
    right(stood(5, Some(5), None));
    right(stood(6, Some(6), Some(5)));
    right(stood(7, Some(7), Some(6)));
    // Somebody may be between whose caller was never told.
    right(stood(7, Some(7), Some(99)));
}

#[test]
fn an_earlier_one_that_is_missed_is_found() {
    wrong(
        &[entered(1, 5, 900), entered(2, 6, 900), stood(6, Some(6), None)],
        "is before it",
    );
    let three = [entered(1, 5, 900), entered(2, 6, 900), entered(3, 7, 900)];
    wrong(&[&three[..], &[stood(7, Some(7), Some(5))]].concat(), "between the two");
}

#[test]
fn an_earlier_one_that_may_be_gone_may_be_missed() {
    let with = |other: Vec<Line>| {
        let lines = [other, vec![entered(2, 6, 900), stood(6, Some(6), None)]].concat();
        assert_eq!(found(&lines), Vec::<String>::new());
    };
    with(vec![entered(1, 5, 55)]);
    with(vec![entered(1, 5, 900), line(55, "c0.0", What::Leaving { created: 5 })]);
    with(vec![
        entered(1, 5, 900),
        line(55, "nemesis", What::Revoked { lease: 50 }),
    ]);
    with(vec![entered(51, 5, 900)]);
}

#[test]
fn a_predecessor_that_is_none_any_more_is_found() {
    let removed = line(49, "c0.0", What::Removed { created: 5 });
    let two = [entered(1, 5, 30), entered(2, 6, 900)];
    let mut lines = [&two[..], &[removed, stood(6, Some(6), Some(5))]].concat();
    wrong(&lines, "deleted its predecessor");
    // What another one deletes may still be seen.
    lines[0].who = "c1.0".into();
    assert_eq!(found(&lines), Vec::<String>::new());
    wrong(
        &[entered(1, 5, 900), entered(2, 6, 900), stood(5, Some(5), Some(6))],
        "came later",
    );
}

#[test]
fn its_own_entry_that_is_missed_or_mistaken_is_found() {
    wrong(&[entered(1, 5, 900), stood(5, None, None)], "its own entry is there");
    wrong(
        &[entered(1, 5, 900), stood(5, Some(4), None)],
        "another entry under its name",
    );
    assert_eq!(found(&[entered(1, 5, 55), stood(5, None, None)]), Vec::<String>::new());
}
