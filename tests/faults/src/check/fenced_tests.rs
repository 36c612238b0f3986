use super::check;
use crate::check::fixture::{call, value};
use crate::history::{Call, Op, Outcome};

fn writes(n: u64, token: u64) -> Call {
    let op = Op::Update {
        key: "/fenced/e".into(),
        value: value(n, n, token),
        expected: None,
    };
    let made = Some((format!("v{n}"), 1));
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
