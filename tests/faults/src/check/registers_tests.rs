use super::{Order, linearizable};
use crate::check::fixture::{call, create, delete, found, latest, made, made_in, nothing, unknown, update, value};
use crate::history::{Call, Op, Outcome};

fn right(calls: &[Call]) {
    let calls: Vec<&Call> = calls.iter().collect();
    assert_eq!(linearizable(&calls), Order::Found);
}

fn wrong(calls: &[Call]) {
    let calls: Vec<&Call> = calls.iter().collect();
    let Order::None(why) = linearizable(&calls) else {
        panic!("an order was found");
    };
    assert!(why.contains("no order from"), "{why}");
}

#[test]
fn one_after_the_other() {
    right(&[
        call("a", 0, 1, create(1), made(1)),
        call("b", 2, 3, latest(), found(1)),
        call("b", 4, 5, update(2, Some(1)), made(2)),
        call("a", 6, 7, delete(Some(2)), Outcome::Done { made: None }),
        call("b", 8, 9, latest(), nothing()),
    ]);
}

#[test]
fn a_stale_read_is_found() {
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, Some(1)), made(2)),
        call("b", 4, 5, latest(), found(1)),
    ]);
}

#[test]
fn a_lost_acknowledged_write_is_found() {
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("b", 4, 5, latest(), nothing()),
    ]);
}

#[test]
fn two_that_overwrite_the_same_version_are_found() {
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 5, update(2, Some(1)), made(2)),
        call("b", 2, 5, update(3, Some(1)), made(3)),
    ]);
}

#[test]
fn an_unknown_write_may_happen_at_any_later_time_or_never() {
    let first = [
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, None), unknown()),
        call("b", 4, 5, latest(), found(1)),
    ];
    right(&first);
    right(&[&first[..], &[call("b", 90, 91, latest(), found(2))]].concat());
}

#[test]
fn a_plain_read_tells_the_version_of_an_unknown_write_and_nothing_of_time() {
    let read = |at, uid| call("b", at, at + 1, Op::Get { key: "/k".into() }, found(uid));
    right(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, Some(1)), unknown()),
        read(4, 2),
        read(6, 1),
        call("b", 8, 9, update(3, Some(2)), made(3)),
    ]);
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, Some(1)), unknown()),
        call("c", 2, 3, update(3, None), unknown()),
        read(4, 2),
        call("b", 8, 9, latest(), found(3)),
        call("b", 10, 11, update(4, Some(2)), made(4)),
    ]);
}

#[test]
fn an_unknown_write_happens_at_most_once() {
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, None), unknown()),
        call("b", 4, 5, latest(), found(2)),
        call("b", 6, 7, update(3, Some(2)), made(3)),
        call("b", 8, 9, latest(), found(2)),
    ]);
}

#[test]
fn a_definite_failure_that_happened_is_found() {
    let refused = Outcome::Refused { why: "full".into() };
    wrong(&[call("a", 0, 1, create(1), refused), call("b", 4, 5, latest(), found(1))]);
}

#[test]
fn a_write_that_was_not_sent_and_happened_is_found() {
    let not_sent = Outcome::NotSent { why: "cut".into() };
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, None), not_sent),
        call("b", 4, 5, latest(), found(2)),
    ]);
}

#[test]
fn a_conflict_with_its_own_write_is_found() {
    // What a client does that sends a create again under another nonce.
    let held = crate::check::fixture::held(1, 0, 1);
    wrong(&[call("a", 0, 1, create(1), Outcome::Taken { held })]);
}

#[test]
fn an_abandoned_create_does_not_come_back() {
    let abandon = Op::Abandon {
        key: "/k".into(),
        value: value(1, 0, 0),
    };
    let first = [
        call("a", 0, 1, create(1), unknown()),
        call("a", 2, 3, abandon, Outcome::Done { made: None }),
    ];
    right(&[&first[..], &[call("b", 4, 5, latest(), nothing())]].concat());
    wrong(&[&first[..], &[call("b", 4, 5, latest(), found(1))]].concat());
}

#[test]
fn another_creation_under_the_same_version_is_found() {
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, Some(1)), made_in(2, 7)),
    ]);
}

#[test]
fn a_refusal_that_names_a_version_that_is_not_there_is_found() {
    let mismatch = |uid: u64| Outcome::Mismatch {
        version: Some(format!("v{uid}")),
    };
    let refused = |named| {
        [
            call("a", 0, 1, create(1), made(1)),
            call("a", 2, 3, update(2, Some(1)), made(2)),
            // Nobody was told which version the third one made, but the first one's is known.
            call("a", 4, 5, update(3, None), unknown()),
            call("c", 6, 7, latest(), found(3)),
            call("b", 8, 9, update(4, Some(1)), mismatch(named)),
        ]
    };
    right(&refused(3));
    wrong(&refused(2));
    // The one that is expected is there: no reason to refuse.
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("b", 2, 3, update(2, Some(1)), mismatch(1)),
    ]);
    // The version that stands is of a write that had not been asked for.
    wrong(&[
        call("a", 0, 1, create(1), made(1)),
        call("a", 2, 3, update(2, Some(1)), unknown()),
        call("b", 4, 5, update(4, Some(1)), mismatch(3)),
        call("a", 6, 7, update(3, None), made(3)),
    ]);
}

#[test]
fn what_is_there_in_the_end_is_a_read_as_well() {
    let (key, held) = ("/k".to_owned(), Some(crate::check::fixture::held(1, 0, 1)));
    let lines = [
        crate::check::fixture::line(4, "judge", crate::history::What::Quiet),
        crate::check::fixture::line(5, "judge", crate::history::What::Final { key, held }),
    ];
    let calls = [call("a", 0, 1, create(1), made(1))];
    right(&[&calls[..], &super::finals(&lines)[..]].concat());
    let lost = [&calls[..], &[call("a", 2, 3, update(2, Some(1)), made(2))]].concat();
    wrong(&[&lost[..], &super::finals(&lines)[..]].concat());
}

#[test]
fn a_call_whose_caller_died_is_unknown() {
    let mut died = call("a", 2, 3, update(2, None), unknown());
    died.end = None;
    right(&[
        call("a", 0, 1, create(1), made(1)),
        died,
        call("b", 4, 5, latest(), found(2)),
    ]);
}

/// Hundreds of blind writes of unknown outcome: an order is found quickly all the same.
#[test]
fn many_unknown_outcomes_do_not_make_it_slow() {
    let mut calls = vec![call("a", 0, 1, create(1), made(1))];
    for n in 0..120 {
        let at = 10 * n + 2;
        calls.push(call("b", at, at + 1, update(1000 + n, Some(n + 1)), unknown()));
        calls.push(call("c", at, at + 1, delete(None), unknown()));
        calls.push(call("a", at + 4, at + 5, update(n + 2, None), made(n + 2)));
        calls.push(call("d", at + 6, at + 7, latest(), found(n + 2)));
    }
    // It would run out of patience.
    right(&calls);
}
