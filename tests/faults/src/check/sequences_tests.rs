use crate::check::fixture::{call, made_in};
use crate::check::{Blame, Violation};
use crate::history::{Call, Op};

fn violations(calls: &[Call]) -> Vec<Violation> {
    super::check("sequential entries", calls, Blame::Ours).violations
}

fn made(from: u64, to: u64, created: u64) -> Call {
    call(
        "a",
        from,
        to,
        Op::Sequential { key: "/q".into() },
        made_in(created, created),
    )
}

#[test]
fn rising_in_the_order_of_the_calls_is_right() {
    assert_eq!(violations(&[made(0, 1, 5), made(2, 9, 8), made(3, 4, 6)]), []);
}

#[test]
fn one_that_is_lower_than_an_earlier_one_is_found() {
    assert_eq!(violations(&[made(0, 1, 5), made(2, 3, 4)]).len(), 1);
}

#[test]
fn two_alike_are_found() {
    assert_eq!(violations(&[made(0, 3, 5), made(1, 2, 5)]).len(), 1);
}
