use super::check;
use crate::check::fixture::{call, value};
use crate::history::{Call, Op, Outcome};

fn writes(n: u64, token: u64) -> Call {
    writes_in(1, n, token)
}

/// In the entry that was created then.
fn writes_in(created: u64, n: u64, token: u64) -> Call {
    let op = Op::Update {
        key: "/fenced/e".into(),
        value: value(n, n, token),
        expected: None,
    };
    let made = Some((format!("v{n}"), created));
    call("a", n, n + 1, op, Outcome::Done { made })
}

#[test]
fn rising_tokens_are_right() {
    assert_eq!(check(&[], &[writes(1, 4), writes(2, 4), writes(3, 9)]).violations, []);
}

#[test]
fn an_older_token_after_a_newer_one_is_found() {
    assert_eq!(check(&[], &[writes(1, 9), writes(2, 4)]).violations.len(), 1);
}

#[test]
fn an_older_token_in_an_entry_made_anew_is_found() {
    assert_eq!(
        check(&[], &[writes_in(1, 5, 9), writes_in(7, 0, 4)]).violations.len(),
        1
    );
    assert_eq!(check(&[], &[writes_in(1, 5, 9), writes_in(7, 0, 9)]).violations, []);
}

#[test]
fn two_that_were_taken_after_the_same_one_are_found() {
    assert_eq!(
        check(&[], &[writes(1, 4), writes(2, 9), writes(2, 4)]).violations.len(),
        1
    );
}
