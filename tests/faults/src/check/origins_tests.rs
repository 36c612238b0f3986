use crate::check::fixture::{call, create, delete, found, held, latest, line, made, made_in, seen, unknown, update};
use crate::check::{Blame, origins};
use crate::history::{Call, Line, Op, Outcome, Seen, What};

fn violations(lines: &[Line], calls: &[Call]) -> Vec<String> {
    let found = origins::check("origins", lines, calls, Blame::Ours).violations;
    found.into_iter().map(|violation| violation.text).collect()
}

fn wrong(lines: &[Line], calls: &[Call], with: &str) {
    let found = violations(lines, calls);
    assert!(found.len() == 1 && found[0].contains(with), "{found:?}");
}

fn tells(at: u64, whole: bool, seen: Vec<Seen>) -> Line {
    line(at, "c0.0", What::Seen { watch: 1, whole, seen })
}

fn get(at: u64, outcome: Outcome) -> Call {
    call("b", at, at + 1, Op::Get { key: "/k".into() }, outcome)
}

#[test]
fn what_was_written_may_be_seen() {
    let calls = [
        call("a", 1, 2, create(1), made(1)),
        call("a", 3, 4, update(2, Some(1)), unknown()),
        get(5, found(2)),
        get(6, found(1)),
    ];
    let lines = [tells(7, true, vec![seen("/k", 1, Some(held(2, 0, 1)))])];
    assert_eq!(violations(&lines, &calls), Vec::<String>::new());
}

#[test]
fn what_nobody_wrote_is_found() {
    wrong(&[], &[get(5, found(1))], "nobody wrote it");
    wrong(
        &[tells(5, true, vec![seen("/k", 1, Some(held(1, 0, 1)))])],
        &[],
        "nobody wrote it",
    );
}

#[test]
fn what_was_written_later_is_found() {
    wrong(
        &[],
        &[get(5, found(1)), call("a", 8, 9, create(1), made(1))],
        "written later",
    );
}

#[test]
fn what_was_written_elsewhere_is_found() {
    let there = tells(5, true, vec![seen("/k2", 1, Some(held(1, 0, 1)))]);
    wrong(&[there], &[call("a", 1, 2, create(1), made(1))], "written elsewhere");
}

/// Plain reads and watches are no steps of the other checker: that a failed write happened must show here.
#[test]
fn a_failed_write_that_is_seen_is_found() {
    let failed = [
        Outcome::Refused { why: "full".into() },
        Outcome::NotSent { why: "cut".into() },
        Outcome::Missing,
        Outcome::Mismatch { version: None },
    ];
    for outcome in failed {
        let write = call("a", 1, 2, update(2, None), outcome);
        wrong(&[], &[write.clone(), get(5, found(2))], "had failed");
        wrong(
            &[tells(5, false, vec![seen("/k", 1, Some(held(2, 0, 1)))])],
            &[write],
            "had failed",
        );
    }
}

#[test]
fn a_version_of_two_entries_is_found() {
    let mut other = held(2, 0, 1);
    other.version = "v1".into();
    let calls = [
        call("a", 1, 2, create(1), made(1)),
        call("a", 3, 4, update(2, None), unknown()),
        get(5, Outcome::Found { held: Some(other) }),
    ];
    wrong(&[], &calls, "another entry's");
    wrong(
        &[],
        &[
            call("a", 1, 2, create(1), made(1)),
            get(
                5,
                Outcome::Found {
                    held: Some(held(1, 0, 7)),
                },
            ),
        ],
        "another entry's",
    );
}

#[test]
fn a_write_that_happened_twice_is_found() {
    let mut again = held(1, 0, 1);
    again.version = "v9".into();
    let calls = [
        call("a", 1, 2, create(1), made(1)),
        get(5, Outcome::Found { held: Some(again) }),
    ];
    wrong(&[], &calls, "written twice");
}

#[test]
fn a_deletion_of_nobodys_is_found() {
    let begun = call("a", 1, 2, create(1), made(1));
    let there = tells(3, true, vec![seen("/k", 1, Some(held(1, 0, 1)))]);
    let told = [
        tells(6, false, vec![seen("/k", 1, None)]),
        tells(6, true, vec![seen("/k", 0, None)]),
        tells(6, true, vec![]),
    ];
    for gone in told {
        let lines = [there.clone(), gone];
        let by = |from, outcome| [begun.clone(), call("a", from, from + 1, delete(Some(1)), outcome)];
        wrong(&lines, std::slice::from_ref(&begun), "nobody deleted it");
        wrong(&lines, &by(4, Outcome::Mismatch { version: None }), "nobody deleted it");
        wrong(&lines, &by(8, Outcome::Done { made: None }), "nobody deleted it");
        assert_eq!(
            violations(&lines, &by(4, Outcome::Done { made: None })),
            Vec::<String>::new()
        );
        assert_eq!(violations(&lines, &by(4, unknown())), Vec::<String>::new());
    }
}

#[test]
fn another_entry_in_the_place_of_one_that_nobody_deleted_is_found() {
    let calls = [
        call("a", 1, 2, create(1), made(1)),
        call("a", 3, 4, create(2), made_in(2, 7)),
        call(
            "b",
            5,
            6,
            latest(),
            Outcome::Found {
                held: Some(held(2, 0, 7)),
            },
        ),
    ];
    let lines = [
        tells(3, true, vec![seen("/k", 1, Some(held(1, 0, 1)))]),
        tells(5, false, vec![seen("/k", 7, Some(held(2, 0, 7)))]),
    ];
    wrong(&lines, &calls, "nobody deleted it");
}
