use std::fmt;

use serde::{Deserialize, Serialize};

/// Which cluster a message belongs to: a random number drawn by the node that formed the cluster.
/// Gossip of another cluster is dropped, so two clusters never merge by accident.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

impl ClusterId {
    /// The id on messages of a node that is in no cluster.
    pub const NONE: Self = Self(0);

    /// A random id that is not [`ClusterId::NONE`].
    pub fn random() -> Self {
        Self(rand::random::<u64>().max(1))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
