use super::check;
use crate::check::fixture::{fault, led, line};
use crate::check::{Blame, Troubles};
use crate::history::{Leadership, Line, Lost, MS, What};

fn blames(lines: &[Line]) -> Vec<Blame> {
    check(lines, &Troubles::of(lines))
        .violations
        .iter()
        .map(|violation| violation.blame)
        .collect()
}

#[test]
fn one_after_the_other_is_right() {
    assert_eq!(blames(&[led("a", 1, 0, 10), led("b", 2, 10, 20)].concat()), []);
}

#[test]
fn two_at_once_are_found_and_ours() {
    let lines = [led("a", 1, 0, 11), led("b", 2, 10, 20)].concat();
    assert_eq!(blames(&lines), [Blame::Ours]);
}

#[test]
fn one_that_knows_it_has_ended_leads_no_more() {
    let leadership = Leadership {
        election: "/e".into(),
        token: 1,
        lease: 10,
    };
    let ended = |at| {
        line(
            at,
            "a",
            What::Ended {
                leadership: leadership.clone(),
                lost: None,
            },
        )
    };
    let history = |at| [led("a", 1, 0, 3000), vec![ended(at)], led("b", 2, 1000, 5000)].concat();
    assert_eq!(blames(&history(900)), []);
    assert_eq!(blames(&history(1100)), [Blame::Ours]);
}

#[test]
fn a_leader_whose_entry_was_deleted_by_nobody_is_found() {
    let leadership = Leadership {
        election: "/e".into(),
        token: 1,
        lease: 10,
    };
    let lost = Some(Lost::Deleted);
    let mut lines = [
        led("a", 1, 0, 3000),
        vec![line(900, "a", What::Ended { leadership, lost })],
    ]
    .concat();
    assert_eq!(blames(&lines), [Blame::Ours]);
    lines.push(line(890, "nemesis", What::Revoked { lease: 10 }));
    assert_eq!(blames(&lines), []);
}

#[test]
fn a_leader_that_is_valid_after_its_end_is_found() {
    // Its `until` is the moment of the look then.
    let mut lines = [led("a", 1, 0, 3000), led("a", 1, 3500, 3600), led("b", 2, 3550, 5000)].concat();
    // Looked at, not begun.
    lines.remove(2);
    assert_eq!(blames(&lines), [Blame::Ours]);
}

#[test]
fn work_that_goes_on_after_its_end_is_found_unless_it_stood_still() {
    let leadership = Leadership {
        election: "/e".into(),
        token: 1,
        lease: 10,
    };
    let lost = Some(Lost::Otherwise);
    let ended = |at| {
        let (leadership, lost) = (leadership.clone(), lost);
        [
            led("c0.0", 1, 0, 3000),
            vec![line(at, "c0.0", What::Ended { leadership, lost })],
        ]
        .concat()
    };
    assert_eq!(blames(&ended(3100)), []);
    assert_eq!(blames(&ended(9000)), [Blame::Ours]);
    let paused = |who| [ended(9000), fault(0, 2000, 8900, who, "pause client")].concat();
    assert_eq!(blames(&paused("c0")), []);
    assert_eq!(blames(&paused("c1")), [Blame::Ours]);
    // Nor may it never end.
    let client = "c0.0".to_owned();
    let killed = |at| {
        [
            led("c0.0", 1, 0, 3000),
            vec![line(at, "nemesis", What::Killed { client: client.clone() })],
        ]
        .concat()
    };
    assert_eq!(blames(&killed(3100)), []);
    assert_eq!(blames(&killed(9000)), [Blame::Ours]);
}

#[test]
fn tokens_that_do_not_rise_are_found() {
    assert_eq!(
        blames(&[led("a", 2, 0, 10), led("b", 2, 10, 20)].concat()),
        [Blame::Ours]
    );
}

#[test]
fn an_entry_that_went_early_is_the_stores_only_if_the_bare_client_lost_a_lease_as_well() {
    let mut lines = [led("a", 1, 0, 3000), led("b", 2, 1000, 5000)].concat();
    lines.push(line(900, "judge", What::Vanished { token: 1 }));
    assert_eq!(blames(&lines), [Blame::Ours]);
    let until = 4000 * MS;
    lines.push(line(950, "judge", What::EndedEarly { lease: 77, until }));
    assert_eq!(blames(&lines), [Blame::Store]);
}

#[test]
fn an_early_end_elsewhere_is_no_excuse_for_an_entry_that_stood() {
    let mut lines = [led("a", 1, 0, 3000), led("b", 2, 1000, 5000)].concat();
    lines.push(line(
        950,
        "judge",
        What::EndedEarly {
            lease: 77,
            until: 4000 * MS,
        },
    ));
    assert_eq!(blames(&lines), [Blame::Ours]);
    lines.push(line(3001, "judge", What::Vanished { token: 1 }));
    assert_eq!(blames(&lines), [Blame::Ours]);
}

#[test]
fn after_a_revoke_by_hand_only_fencing_covers() {
    let mut lines = [led("a", 1, 0, 3000), led("b", 2, 1000, 5000)].concat();
    lines.push(line(900, "nemesis", What::Revoked { lease: 10 }));
    assert_eq!(blames(&lines), []);
    // Before it, nothing is excused.
    lines.push(line(0, "c", What::Note { text: String::new() }));
    let early = [led("a", 1, 0, 3000), led("b", 2, 500, 5000), vec![lines.remove(4)]].concat();
    assert_eq!(blames(&early), [Blame::Ours]);
}
