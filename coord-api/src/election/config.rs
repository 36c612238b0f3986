use std::time::Duration;

use crate::{Error, ErrorKind, Key, Lease, Operation, Result, margin};

/// The settings of an [`Election`](crate::Election).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionConfig {
    /// What is elected. [`Recipe::Sequence`] keeps one entry per candidate below this key; with [`Recipe::Cas`] the key
    /// itself is the leader's entry. All candidates of one election use the same recipe.
    pub key: Key,
    /// What this candidate is called. It need not be unique: a random incarnation is added for each campaign.
    pub name: String,
    /// How the leader is found. Default: [`Recipe::Sequence`].
    pub recipe: Recipe,
    /// How long the work needs to stop when told. It is told that much before leadership ends; together with the
    /// margin at most half of the granted ttl. Stay well below that: the nearer it comes, the sooner a renewal that is
    /// answered late means to stop, and on ZooKeeper, whose proof counts from the renewal before, half of the ttl leaves
    /// no time at all. Default: 250 ms.
    pub stop_within: Duration,
}

/// How candidates find their leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Recipe {
    /// Each candidate adds an entry; the one created first leads; each other watches only the one immediately before
    /// its own, so that one loss wakes one candidate. First come, first served.
    #[default]
    Sequence,
    /// Each candidate tries to create the same entry; who succeeds leads; the others watch it, and all try again when
    /// it goes. One entry whatever the number of candidates, in no order among them.
    Cas,
}

impl ElectionConfig {
    /// An election of `key`, in which this candidate is called `name`; the rest by default.
    pub fn new(key: Key, name: impl Into<String>) -> ElectionConfig {
        ElectionConfig {
            key,
            name: name.into(),
            recipe: Recipe::default(),
            stop_within: Duration::from_millis(250),
        }
    }

    /// Refuses a `stop_within` that an ordinary renewal could not outrun.
    pub(super) fn check(&self, lease: &Lease) -> Result<()> {
        let (needed, ttl) = (self.stop_within.saturating_add(margin(lease.ttl)), lease.ttl);
        if needed <= ttl / 2 {
            return Ok(());
        }
        let problem = format!(
            "election: stop_within and the margin take {needed:?}, more than half of the granted ttl of {ttl:?}; \
             ask for a longer ttl or stop faster"
        );
        let kind = ErrorKind::InvalidConfig(problem);
        Err(Error::definite(Operation::Create, Some(&self.key), kind))
    }
}
