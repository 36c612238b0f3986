use std::time::Duration;

use super::Backoff;
use crate::{Capabilities, Error, ErrorKind, Operation, Result};

/// The settings of a [`Session`](crate::Session). The defaults are right for most.
///
/// ```
/// use std::time::Duration;
/// use coord_api::{Backoff, SessionConfig, Strategy};
///
/// let config = SessionConfig {
///     name: "localhost:50000".into(),
///     ttl: Duration::from_secs(10),
///     backoff: Backoff {
///         strategy: Strategy::Constant { delay: Duration::from_secs(5) },
///         ..Backoff::default()
///     },
/// };
/// # assert_eq!(config.backoff.limit, None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SessionConfig {
    /// What logs and metrics call it. Default: `session`.
    pub name: String,
    /// The time to live to ask for; the store may grant another. Default: 15 s.
    pub ttl: Duration,
    /// How long to wait between attempts to get a new lease after a loss.
    pub backoff: Backoff,
}

impl Default for SessionConfig {
    fn default() -> SessionConfig {
        SessionConfig {
            name: "session".into(),
            ttl: Duration::from_secs(15),
            backoff: Backoff::default(),
        }
    }
}

impl SessionConfig {
    /// The shortest ttl in which renewals and the margin find room.
    const MIN_TTL: Duration = Duration::from_millis(500);

    /// Refuses what cannot work, and says why.
    pub(super) fn check(&self, capabilities: &Capabilities) -> Result<()> {
        let (ttl, max, min) = (self.ttl, capabilities.max_ttl, SessionConfig::MIN_TTL);
        let problem = if ttl < min {
            Some(format!(
                "session: ttl is {ttl:?}, it must be at least {min:?} so that renewals fit into it"
            ))
        } else if ttl > max {
            let driver = capabilities.driver;
            Some(format!(
                "session: ttl is {ttl:?}, the {driver} driver takes at most {max:?}"
            ))
        } else {
            self.backoff.problem()
        };
        match problem {
            None => Ok(()),
            Some(problem) => Err(Error::definite(
                Operation::Open,
                None,
                ErrorKind::InvalidConfig(problem),
            )),
        }
    }
}
