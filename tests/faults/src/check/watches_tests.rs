use super::check;
use crate::check::fixture::{call, held, line, seen};
use crate::history::{Line, Op, Outcome, Seen, What};

fn tells(at: u64, whole: bool, seen: Vec<Seen>) -> Line {
    line(at, "c0.0", What::Seen { watch: 1, whole, seen })
}

fn ends(held: Option<crate::history::Held>) -> Vec<Line> {
    let key = "/k".into();
    vec![
        line(90, "judge", What::Final { key, held }),
        line(91, "c0.0", What::Closed),
    ]
}

fn wrong(lines: Vec<Line>, with: &str) {
    let found = check(&lines, &[]).violations;
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
    assert_eq!(check(&[lines, ends(Some(held(3, 0, 9)))].concat(), &[]).violations, []);
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
    assert_eq!(check(&[lines, ends(None)].concat(), &[]).violations, []);
}

#[test]
fn a_read_that_goes_back_is_found() {
    let read = |at, held| {
        call(
            "c0.0",
            at,
            at + 1,
            Op::Get { key: "/k".into() },
            Outcome::Found { held },
        )
    };
    let back = [read(1, Some(held(2, 1, 5))), read(3, Some(held(1, 0, 5)))];
    assert_eq!(check(&[], &back).violations.len(), 1);
    let at_once = [read(1, Some(held(2, 1, 5))), read(1, Some(held(1, 0, 5)))];
    assert_eq!(check(&[], &at_once).violations, []);
}
