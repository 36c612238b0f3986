use crate::check::fixture::{call, held, line, made_in, seen, value};
use crate::check::{Blame, Violation};
use crate::history::{Call, Held, Line, Op, Outcome, Seen, What};

/// One watch of a key, which tells this.
fn check(lines: &[Line], calls: &[Call]) -> Vec<Violation> {
    let lines = [vec![watching("/k", false)], lines.to_vec()].concat();
    super::check("watches", &lines, calls, Blame::Ours).violations
}

fn watching(target: &str, children: bool) -> Line {
    let (watch, target) = (1, target.into());
    let watching = What::Watching {
        watch,
        target,
        children,
    };
    line(0, "c0.0", watching)
}

fn tells(at: u64, whole: bool, seen: Vec<Seen>) -> Line {
    line(at, "c0.0", What::Seen { watch: 1, whole, seen })
}

fn ends(held: Option<Held>) -> Vec<Line> {
    let key = "/k".into();
    vec![
        line(90, "judge", What::Final { key, held }),
        line(91, "c0.0", What::Closed),
    ]
}

fn wrong(lines: Vec<Line>, with: &str) {
    let found = check(&lines, &[]);
    assert!(found.iter().any(|violation| violation.text.contains(with)), "{found:?}");
}

#[test]
fn forward_and_to_the_end() {
    let lines = vec![
        tells(0, true, vec![seen("/k", 0, None)]),
        tells(1, false, vec![seen("/k", 5, Some(held(1, 0, 5)))]),
        tells(2, false, vec![seen("/k", 5, Some(held(2, 1, 5)))]),
        tells(3, false, vec![seen("/k", 5, None)]),
        tells(4, true, vec![seen("/k", 9, Some(held(3, 0, 9)))]),
    ];
    assert_eq!(check(&[lines, ends(Some(held(3, 0, 9)))].concat(), &[]), []);
}

#[test]
fn back_in_time_is_found() {
    wrong(
        vec![
            tells(1, false, vec![seen("/k", 5, Some(held(2, 1, 5)))]),
            tells(2, false, vec![seen("/k", 5, Some(held(1, 0, 5)))]),
        ],
        "it showed",
    );
}

#[test]
fn a_deleted_entry_that_comes_back_as_itself_is_found() {
    wrong(
        vec![
            tells(1, false, vec![seen("/k", 5, Some(held(1, 0, 5)))]),
            tells(2, false, vec![seen("/k", 5, None)]),
            tells(3, false, vec![seen("/k", 5, Some(held(1, 0, 5)))]),
        ],
        "it showed",
    );
}

#[test]
fn a_missed_deletion_is_found() {
    let lines = vec![tells(1, false, vec![seen("/k", 5, Some(held(1, 0, 5)))])];
    wrong([lines, ends(None)].concat(), "ends with");
}

#[test]
fn an_end_that_is_not_what_is_there_is_found() {
    let lines = vec![tells(1, true, vec![seen("/k", 5, Some(held(1, 0, 5)))])];
    wrong([lines, ends(Some(held(2, 1, 5)))].concat(), "ends with");
}

#[test]
fn a_whole_state_tells_what_is_gone() {
    let lines = vec![
        tells(1, true, vec![seen("/k", 5, Some(held(1, 0, 5)))]),
        tells(2, true, vec![]),
    ];
    assert_eq!(check(&[lines, ends(None)].concat(), &[]), []);
}

#[test]
fn one_that_never_tells_anything_is_found() {
    wrong(ends(Some(held(1, 0, 5))), "ends with None");
    assert_eq!(check(&ends(None), &[]), []);
}

#[test]
fn children_that_are_never_told_of_are_found() {
    let end = |key: &str| {
        let (key, held) = (key.into(), Some(held(1, 0, 5)));
        vec![
            line(90, "judge", What::Final { key, held }),
            line(91, "c0.0", What::Closed),
        ]
    };
    let found = |key: &str| {
        let lines = [vec![watching("/parent", true), tells(1, true, vec![])], end(key)].concat();
        super::check("watches", &lines, &[], Blame::Ours).violations.len()
    };
    assert_eq!(found("/parent/k"), 1);
    assert_eq!(found("/parents/k"), 0);
    assert_eq!(found("/parent/k/below"), 0);
}

#[test]
fn one_that_tells_of_another_key_is_found() {
    wrong(
        vec![tells(1, false, vec![seen("/k2", 5, Some(held(1, 0, 5)))])],
        "tells of /k2",
    );
}

fn read(at: u64, held: Option<Held>) -> Call {
    let key = "/k".into();
    call("c0.0", at, at + 1, Op::Get { key }, Outcome::Found { held })
}

#[test]
fn a_read_that_goes_back_is_found() {
    let back = [read(1, Some(held(2, 1, 5))), read(3, Some(held(1, 0, 5)))];
    assert_eq!(check(&[], &back).len(), 1);
    let at_once = [read(1, Some(held(2, 1, 5))), read(1, Some(held(1, 0, 5)))];
    assert_eq!(check(&[], &at_once), []);
}

#[test]
fn a_read_that_goes_back_behind_a_read_of_the_latest_is_found() {
    let mut latest = read(1, Some(held(2, 1, 5)));
    latest.op = Op::GetLatest { key: "/k".into() };
    assert_eq!(check(&[], &[latest.clone(), read(3, Some(held(1, 0, 5)))]).len(), 1);
    assert_eq!(check(&[], &[latest, read(3, Some(held(2, 1, 5)))]), []);
}

#[test]
fn a_read_that_misses_the_clients_own_write_is_found() {
    let write = |who| {
        let (key, value) = ("/k".into(), value(2, 1, 0));
        let op = Op::Update {
            key,
            value,
            expected: None,
        };
        call(who, 1, 2, op, made_in(2, 5))
    };
    assert_eq!(check(&[], &[write("c0.0"), read(3, Some(held(1, 0, 5)))]).len(), 1);
    // Of another one's it need not know.
    assert_eq!(check(&[], &[write("c1.0"), read(3, Some(held(1, 0, 5)))]), []);
}

#[test]
fn a_read_of_what_the_client_itself_deleted_is_found() {
    let delete = |from, to| {
        let op = Op::Delete {
            key: "/k".into(),
            expected: Some("v1".into()),
        };
        call("c0.0", from, to, op, Outcome::Done { made: None })
    };
    let before = read(1, Some(held(1, 0, 5)));
    let there = read(6, Some(held(1, 0, 5)));
    assert_eq!(check(&[], &[before.clone(), delete(3, 4), there.clone()]).len(), 1);
    assert_eq!(check(&[], &[before.clone(), delete(3, 9), there]), []);
    assert_eq!(check(&[], &[before, delete(3, 4), read(6, Some(held(3, 0, 8)))]), []);
}
