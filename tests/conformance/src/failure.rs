use std::fmt;
use std::panic::Location;

use coord_api::{ErrorKind, LeaseId};

/// A value of half a megabyte in a message helps nobody.
const LONGEST: usize = 1500;

/// A promise that was not kept: what was expected, what was seen, and where that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    inconclusive: bool,
    lost: Option<LeaseId>,
}

/// What a behaviour, or a step of it, ends with.
pub(crate) type Checked<T = ()> = Result<T, Failure>;

impl Failure {
    #[track_caller]
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        let mut message = message.into();
        if let Some((at, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(at);
            message.push('…');
        }
        let at = Location::caller();
        let file = at.file().rsplit('/').next().unwrap_or_default();
        Failure {
            message: format!("{message} ({file}:{})", at.line()),
            inconclusive: false,
            lost: None,
        }
    }

    /// Nothing was seen that breaks a promise, but the clock shows that nothing was proved either: machine or store were
    /// too slow. The behaviour begins anew; one that never comes to a verdict has failed.
    #[track_caller]
    pub(crate) fn inconclusive(message: impl Into<String>) -> Failure {
        Failure::new(message).made_inconclusive()
    }

    pub(crate) fn made_inconclusive(self) -> Failure {
        Failure {
            inconclusive: true,
            ..self
        }
    }

    /// The lease that had ended where it was to be used.
    pub(crate) fn lost(&self) -> Option<LeaseId> {
        self.lost
    }

    pub(crate) fn is_inconclusive(&self) -> bool {
        self.inconclusive
    }
}

/// An error where none was expected.
impl From<coord_api::Error> for Failure {
    #[track_caller]
    fn from(error: coord_api::Error) -> Failure {
        let lost = match error.kind() {
            ErrorKind::LeaseLost(lease) => Some(*lease),
            _ => None,
        };
        Failure {
            lost,
            ..Failure::new(format!("expected success, saw {error:?}"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Ends the behaviour unless the condition holds.
macro_rules! check {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err($crate::failure::Failure::new(format!($($why)+)));
        }
    };
}

/// Ends the behaviour unless what was seen equals what was expected.
macro_rules! check_eq {
    ($seen:expr, $expected:expr, $($what:tt)+) => {
        match (&$seen, &$expected) {
            (seen, expected) => check!(
                *seen == *expected,
                "{}: expected {expected:?}, saw {seen:?}",
                format_args!($($what)+)
            ),
        }
    };
}

/// Ends the behaviour unless the call was refused, definitely, with this kind of error; gives the error.
macro_rules! refused {
    ($result:expr, $kind:pat, $($what:tt)+) => {
        match $result {
            Ok(seen) => return Err($crate::failure::Failure::new(format!(
                "{}: expected a refusal ({}), saw success: {seen:?}",
                format_args!($($what)+),
                stringify!($kind),
            ))),
            Err(error) => {
                check!(
                    matches!(error.kind(), $kind),
                    "{}: expected a refusal ({}), saw {error:?}",
                    format_args!($($what)+),
                    stringify!($kind)
                );
                check!(
                    error.is_definite(),
                    "{}: expected class Definite, saw {error:?}",
                    format_args!($($what)+)
                );
                error
            }
        }
    };
}
