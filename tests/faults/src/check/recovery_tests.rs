use super::{check, slowest};
use crate::check::Troubles;
use crate::check::fixture::{call, create, fault, led, line, made, seen, unknown};
use crate::history::{Call, Line, What};

/// A fault from 10 to 20 s; everything works again at `back`, in ms.
fn history(back: u64) -> (Vec<Line>, Vec<Call>) {
    let watch = What::Seen {
        watch: 1,
        whole: false,
        seen: vec![seen("/k", 1, None)],
    };
    let watching = What::Watching {
        watch: 1,
        target: "/k".into(),
        children: false,
    };
    let registered = What::Registered {
        registered: true,
        lease: 7,
        until: 4000 * crate::history::MS,
    };
    let election = "/e".into();
    let lines = [
        vec![
            line(999, "c0.0", watching),
            line(1000, "c0.0", registered),
            line(1001, "c0.0", What::Campaigns { election }),
        ],
        fault(0, 10_000, 20_000, "s0", "kill"),
        vec![line(back, "c0.0", watch)],
        led("c0.0", 1, back, back + 10),
        vec![line(99_000, "judge", What::Quiet), line(99_001, "c0.0", What::Closed)],
    ];
    let calls = vec![
        call("c0.0", 19_000, 20_500, create(1), unknown()),
        call("c0.0", back, back + 5, create(2), made(2)),
    ];
    (lines.concat(), calls)
}

#[test]
fn what_works_again_in_time_is_right() {
    let (lines, calls) = history(21_000);
    let troubles = Troubles::of(&lines);
    assert_eq!(check(&lines, &calls, &troubles).violations, []);
    let slowest = slowest(&lines, &calls, &troubles).unwrap();
    assert_eq!(slowest, ("kill of s0".into(), 1_005 * crate::history::MS));
}

#[test]
fn what_works_again_too_late_is_found() {
    let (lines, calls) = history(80_000);
    let found = check(&lines, &calls, &Troubles::of(&lines)).violations;
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn what_never_works_again_is_found() {
    let (lines, mut calls) = history(21_000);
    calls.pop();
    let found = check(&lines, &calls, &Troubles::of(&lines)).violations;
    assert!(found.len() == 1 && found[0].text.contains("never again"), "{found:?}");
}

#[test]
fn one_of_many_watches_that_tells_nothing_any_more_is_found() {
    let (mut lines, calls) = history(21_000);
    let watching = What::Watching {
        watch: 2,
        target: "/k2".into(),
        children: false,
    };
    lines.insert(0, line(998, "c0.0", watching));
    let found = check(&lines, &calls, &Troubles::of(&lines)).violations;
    assert!(
        found.len() == 1 && found[0].text.contains("Watch(\"c0.0\", 2)"),
        "{found:?}"
    );
}

#[test]
fn an_election_that_nobody_ever_won_is_found() {
    let (mut lines, calls) = history(21_000);
    let election = "/other".into();
    lines.insert(0, line(998, "c0.0", What::Campaigns { election }));
    let found = check(&lines, &calls, &Troubles::of(&lines)).violations;
    assert!(found.len() == 1 && found[0].text.contains("/other"), "{found:?}");
}
