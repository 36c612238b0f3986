use std::time::Duration;

use coord_api::{Capabilities, Error, ErrorKind, Key, Operation, Result};

/// How to bootstrap. All nodes of one cluster have the same prefix, and had better have the same of everything else.
///
/// ```
/// use std::time::Duration;
/// use coord_api::Key;
/// use coord_bootstrap::{Config, Reform};
///
/// let config = Config {
///     max_seeds: 3,
///     ..Config::new(Key::new("/orders")?, Duration::from_secs(10))
/// };
/// assert_eq!(config.reform, Reform::After(Duration::from_secs(60)));
/// # Ok::<(), coord_api::InvalidKey>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Everything is kept below this key: `leader`, `cluster` and `seeds`.
    pub prefix: Key,
    /// The time to live of the leader's entry.
    pub ttl: Duration,
    /// The most seeds that are advertised. Default 5.
    pub max_seeds: usize,
    /// Only ever join a cluster that others have formed. Default `false`.
    pub join_only: bool,
    /// When a cluster of which nothing is heard any more may be formed anew. Default: after 3 ttl + 30 s.
    pub reform: Reform,
    /// How long one seed has to answer. Default 3 s.
    pub join_timeout: Duration,
    /// The first wait between two attempts; each further one doubles up to [`wait_max`](Config::wait_max), and a random
    /// part of up to half of it is taken off. Default 250 ms.
    pub wait_first: Duration,
    /// The longest wait between two attempts. Default 5 s.
    pub wait_max: Duration,
    /// Give up when no cluster could be joined or formed for this long. Default: never.
    pub give_up_after: Option<Duration>,
    /// The manager, as the valid holder of the leader's entry, puts members down that have been unreachable for this long
    /// without a change. Default: nobody is put down.
    pub down_after: Option<Duration>,
}

/// When a cluster of which nothing is heard any more may be formed anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reform {
    /// When for this long nobody held the leader's entry and no seed answered. At least the ttl.
    After(Duration),
    /// Never: somebody has to delete the record `<prefix>/cluster` first.
    Never,
}

// === impl Config ===

impl Config {
    /// The shortest ttl in which renewals and margins find room.
    const MIN_TTL: Duration = Duration::from_secs(1);

    /// This prefix and ttl, and the rest by default.
    pub fn new(prefix: Key, ttl: Duration) -> Config {
        Config {
            prefix,
            ttl,
            max_seeds: 5,
            join_only: false,
            reform: Reform::After(ttl * 3 + Duration::from_secs(30)),
            join_timeout: Duration::from_secs(3),
            wait_first: Duration::from_millis(250),
            wait_max: Duration::from_secs(5),
            give_up_after: None,
            down_after: None,
        }
    }

    /// Refuses what cannot work, and says why.
    pub(crate) fn check(&self, capabilities: &Capabilities) -> Result<()> {
        let (ttl, min, max) = (self.ttl, Config::MIN_TTL, capabilities.max_ttl);
        let problem = if ttl < min || ttl > max {
            format!("bootstrap: ttl is {ttl:?}, it must lie between {min:?} and {max:?}")
        } else if self.max_seeds == 0 {
            "bootstrap: without a seed nobody finds the cluster; max_seeds must be at least 1".into()
        } else if self.join_timeout.is_zero() || self.wait_first.is_zero() || self.wait_max < self.wait_first {
            "bootstrap: join_timeout and wait_first must be above zero, and wait_max not below wait_first".into()
        } else if matches!(self.reform, Reform::After(patience) if patience < ttl) {
            format!(
                "bootstrap: reform is {:?}, it must be at least the ttl ({ttl:?}): nothing is heard of a living cluster \
                 for as long when its manager changes",
                self.reform
            )
        } else {
            return Ok(());
        };
        Err(Error::definite(
            Operation::Open,
            Some(&self.prefix),
            ErrorKind::InvalidConfig(problem),
        ))
    }
}

/// Where things are kept.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) leader: Key,
    pub(crate) record: Key,
    pub(crate) seeds: Key,
}

impl Keys {
    pub(crate) fn below(prefix: &Key) -> Result<Keys> {
        let child = |name| {
            let invalid = |invalid| Error::definite(Operation::Open, Some(prefix), ErrorKind::InvalidKey(invalid));
            prefix.child(name).map_err(invalid)
        };
        Ok(Keys {
            leader: child("leader")?,
            record: child("cluster")?,
            seeds: child("seeds")?,
        })
    }
}
