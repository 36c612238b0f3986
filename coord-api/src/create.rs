use std::fmt;

use bytes::Bytes;

use crate::{Env, Key, LeaseId};

/// One attempt to create an entry, which keeps its identity when it is sent again.
///
/// The nonce makes it *one* attempt: after an error of class [`Unknown`](crate::Class::Unknown), calling
/// [`create`](crate::Coordinator::create) again with the same `Create` finds the entry that the first call made, or
/// makes it; never are there two. Or give up with [`abandon`](crate::Coordinator::abandon).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The entry's name; for [`CreateMode::Sequential`] the parent under which the store chooses a name.
    pub key: Key,
    /// Its value.
    pub value: Bytes,
    /// How long it lives and who names it.
    pub mode: CreateMode,
    /// Which attempt this is.
    pub nonce: Nonce,
}

/// How long an entry lives, and who names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateMode {
    /// Until it is deleted.
    Persistent,
    /// Until it is deleted or the lease ends.
    Ephemeral(LeaseId),
    /// Like ephemeral, below the given key, under a name of the store's choosing that begins with `~`. The name is
    /// opaque: [`Entry::created`](crate::Entry::created) tells the order.
    Sequential(LeaseId),
}

/// What tells one create from every other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub u128);

// === impl Create ===

impl Create {
    /// A fresh attempt, its nonce drawn from the environment.
    pub fn new(env: &Env, key: Key, value: impl Into<Bytes>, mode: CreateMode) -> Create {
        Create {
            key,
            value: value.into(),
            mode,
            nonce: env.nonce(),
        }
    }
}

impl CreateMode {
    /// The lease that the entry is bound to.
    pub fn lease(self) -> Option<LeaseId> {
        match self {
            CreateMode::Persistent => None,
            CreateMode::Ephemeral(lease) | CreateMode::Sequential(lease) => Some(lease),
        }
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({self})")
    }
}
