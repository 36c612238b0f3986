//! What one key does when one thing happens after the other.

use porcupine_rs::{Model, Operation};

/// The model of a key: what is there.
#[derive(Debug, Clone)]
pub(super) struct Register;

/// What is there, and which creates can no longer happen because they were abandoned first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    entry: Entry,
    fenced: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Entry {
    Absent,
    Present {
        /// The uid of the create that made it.
        creator: u64,
        /// The uid of its value.
        uid: u64,
        /// Its name was told to somebody, or will be by the first who sees it.
        version: Option<u64>,
        created: Option<u64>,
    },
    /// After everything that is known to have happened: what is left may never have.
    Over,
}

/// An operation with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Somebody saw this. A refused create did, too.
    Saw(Option<Sight>),
    /// Somebody was told that this version is not there, and perhaps which one is.
    NotThere {
        expected: Named,
        now: Option<Named>,
    },
    Create {
        uid: u64,
        result: Fate,
    },
    Update {
        uid: u64,
        expected: Option<Named>,
        result: Fate,
    },
    Delete {
        expected: Option<Named>,
        known: bool,
    },
    /// The create of this uid is undone.
    Abandon {
        uid: u64,
        known: bool,
    },
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) uid: u64,
    pub(super) version: u64,
    pub(super) created: u64,
}

/// A version that a caller named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) version: u64,
    /// Whose value it is, if anybody ever saw the two together.
    pub(super) uid: Option<u64>,
}

impl Named {
    /// Whether it is what is there.
    fn is(self, uid: u64, version: Option<u64>) -> bool {
        match version {
            Some(version) => version == self.version,
            None => self.uid.is_none_or(|own| own == uid),
        }
    }
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Happened {
        version: u64,
        created: u64,
    },
    /// It may happen at any later moment, or never.
    Unknown,
    /// It may have happened, until it was abandoned.
    Abandoned,
}

impl Model for Register {
    type State = State;
    type Op = Step;
    type Metadata = ();

    fn init() -> State {
        State {
            entry: Entry::Absent,
            fenced: vec![],
        }
    }

    fn step(state: &State, step: &Step) -> (bool, State) {
        let mut fenced = state.fenced.clone();
        let next = match *step {
            // Its abandonment came first.
            Step::Create {
                uid,
                result: Fate::Abandoned,
            } if fenced.contains(&uid) => Some(state.entry.clone()),
            _ => after(&state.entry, step),
        };
        let Some(entry) = next else {
            return (false, state.clone());
        };
        if let Step::Abandon { uid, known: true } = *step {
            fenced.push(uid);
            fenced.sort_unstable();
        }
        (true, State { entry, fenced })
    }
}

/// What is there after the step, if it can happen here.
///
/// A write of unknown outcome is a step where it changes something, and otherwise only when everything is over: to try
/// every place where it changes nothing would cost much and show nothing.
fn after(state: &Entry, step: &Step) -> Option<Entry> {
    use Entry::{Absent, Over, Present};
    if let Over = state {
        return step.may_never_happen().then_some(Over);
    }
    let present = match *state {
        Present {
            creator,
            uid,
            version,
            created,
        } => Some((creator, uid, version, created)),
        _ => None,
    };
    let unseen = |creator, uid, created| Present {
        creator,
        uid,
        version: None,
        created,
    };
    match *step {
        Step::Over => Some(Over),
        Step::Saw(None) => present.is_none().then_some(Absent),
        Step::Saw(Some(sight)) => {
            let (creator, uid, version, created) = present?;
            let same = uid == sight.uid
                && version.is_none_or(|version| version == sight.version)
                && created.is_none_or(|created| created == sight.created);
            same.then_some(Present {
                creator,
                uid,
                version: Some(sight.version),
                created: Some(sight.created),
            })
        }
        Step::NotThere { expected, now } => {
            let (creator, uid, version, created) = present?;
            let is_it = expected.is(uid, version) && (version.is_some() || expected.uid.is_some());
            let fits = !is_it && now.is_none_or(|now| now.is(uid, version));
            fits.then_some(Present {
                creator,
                uid,
                version: version.or(now.map(|now| now.version)),
                created,
            })
        }
        Step::Create { uid, result } => match (present, result) {
            (None, Fate::Happened { version, created }) => Some(Present {
                creator: uid,
                uid,
                version: Some(version),
                created: Some(created),
            }),
            (None, Fate::Unknown | Fate::Abandoned) => Some(unseen(uid, uid, None)),
            (Some(_), Fate::Abandoned) => Some(state.clone()),
            (Some(_), _) => None,
        },
        Step::Update { uid, expected, result } => {
            let (creator, before, version, created) = present?;
            if expected.is_some_and(|expected| !expected.is(before, version)) {
                return None;
            }
            match result {
                Fate::Happened { version, created: told } => {
                    created.is_none_or(|created| created == told).then_some(Present {
                        creator,
                        uid,
                        version: Some(version),
                        created: Some(told),
                    })
                }
                _ => Some(unseen(creator, uid, created)),
            }
        }
        Step::Delete { expected, .. } => {
            let (_, uid, version, _) = present?;
            expected
                .is_none_or(|expected| expected.is(uid, version))
                .then_some(Absent)
        }
        Step::Abandon { uid, known } => match present {
            Some((creator, ..)) if creator == uid => Some(Absent),
            _ => known.then(|| state.clone()),
        },
    }
}

impl Step {
    fn may_never_happen(&self) -> bool {
        matches!(
            self,
            Step::Create {
                result: Fate::Unknown,
                ..
            } | Step::Update {
                result: Fate::Unknown,
                ..
            } | Step::Delete { known: false, .. }
                | Step::Abandon { known: false, .. }
        )
    }

    /// The same operation if its end had not been seen: nothing is left of one that could not have changed anything.
    pub(super) fn unfinished(&self) -> Option<Step> {
        match self.clone() {
            Step::Saw(_) | Step::NotThere { .. } | Step::Over => None,
            Step::Create { uid, .. } => Some(Step::Create {
                uid,
                result: Fate::Unknown,
            }),
            Step::Update { uid, expected, .. } => Some(Step::Update {
                uid,
                expected,
                result: Fate::Unknown,
            }),
            Step::Delete { expected, .. } => Some(Step::Delete { expected, known: false }),
            Step::Abandon { uid, .. } => Some(Step::Abandon { uid, known: false }),
        }
    }
}

/// At what time everything that is known to have happened is over.
pub(super) const OVER: i64 = i64::MAX - 2;

/// The operation that ends a history; only what may never have happened comes after it.
pub(super) fn over() -> Operation<Register> {
    operation(OVER, OVER + 1, Step::Over)
}

pub(super) fn operation(from: i64, to: i64, op: Step) -> Operation<Register> {
    Operation {
        client_id: None,
        call_time: from,
        return_time: to,
        op,
        metadata: None,
    }
}
