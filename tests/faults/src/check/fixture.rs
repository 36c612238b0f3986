//! Histories by hand.

use crate::history::{Call, Held, Leadership, Line, MS, Op, Outcome, Seen, Trouble, Value, What};

pub(super) fn line(at: u64, who: &str, what: What) -> Line {
    Line {
        at: at * MS,
        who: who.to_owned(),
        what,
    }
}

pub(super) fn call(who: &str, from: u64, to: u64, op: Op, outcome: Outcome) -> Call {
    Call {
        who: who.to_owned(),
        from: from * MS,
        end: Some((to * MS, outcome)),
        op,
    }
}

pub(super) fn value(uid: u64, n: u64, token: u64) -> String {
    Value { uid, n, token }.to_string()
}

pub(super) fn held(uid: u64, n: u64, created: u64) -> Held {
    Held {
        value: value(uid, n, 0),
        version: format!("v{uid}"),
        created,
    }
}

pub(super) fn create(uid: u64) -> Op {
    Op::Create {
        key: "/k".into(),
        value: value(uid, 0, 0),
    }
}

pub(super) fn update(uid: u64, expected: Option<u64>) -> Op {
    Op::Update {
        key: "/k".into(),
        value: value(uid, 0, 0),
        expected: expected.map(|uid| format!("v{uid}")),
    }
}

pub(super) fn delete(expected: Option<u64>) -> Op {
    Op::Delete {
        key: "/k".into(),
        expected: expected.map(|uid| format!("v{uid}")),
    }
}

pub(super) fn latest() -> Op {
    Op::GetLatest { key: "/k".into() }
}

/// The write of `uid` happened; the entry was created at 1.
pub(super) fn made(uid: u64) -> Outcome {
    made_in(uid, 1)
}

pub(super) fn made_in(uid: u64, created: u64) -> Outcome {
    Outcome::Done {
        made: Some((format!("v{uid}"), created)),
    }
}

pub(super) fn found(uid: u64) -> Outcome {
    Outcome::Found {
        held: Some(held(uid, 0, 1)),
    }
}

pub(super) fn nothing() -> Outcome {
    Outcome::Found { held: None }
}

pub(super) fn unknown() -> Outcome {
    Outcome::Unknown {
        why: "no answer".into(),
    }
}

pub(super) fn seen(key: &str, created: u64, held: Option<Held>) -> Seen {
    Seen {
        key: key.into(),
        created,
        held,
    }
}

pub(super) fn led(who: &str, token: u64, from: u64, until: u64) -> Vec<Line> {
    let leadership = Leadership {
        election: "/e".into(),
        token,
        lease: token * 10,
    };
    let valid = What::Valid {
        leadership: leadership.clone(),
        until: until * MS,
    };
    vec![line(from, who, What::Elected(leadership)), line(from + 1, who, valid)]
}

pub(super) fn fault(number: usize, from: u64, to: u64, target: &str, name: &str) -> Vec<Line> {
    let fault = What::Fault {
        number,
        name: name.into(),
        target: target.into(),
        trouble: Trouble::Servers,
    };
    vec![
        line(from, "nemesis", fault),
        line(to, "nemesis", What::Healed { number }),
    ]
}
