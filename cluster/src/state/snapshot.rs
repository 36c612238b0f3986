use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Derived, GossipState};

/// A gossip state that no longer changes, together with what follows from it (leader, ring, who is unreachable),
/// worked out once. Cheap to clone: a thousand simulated nodes that agree share one copy.
#[derive(Debug, Clone)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: GossipState,
    derived: OnceLock<Derived>,
}

impl Snapshot {
    /// Freezes a state.
    pub fn new(state: GossipState) -> Self {
        Self {
            inner: Arc::new(Inner {
                state,
                derived: OnceLock::new(),
            }),
        }
    }

    /// The state.
    pub fn state(&self) -> &GossipState {
        &self.inner.state
    }

    pub(crate) fn derived(&self) -> &Derived {
        self.inner.derived.get_or_init(|| Derived::of(&self.inner.state))
    }

    /// Both states merged; shares one of the two when that one already holds everything.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return self.clone();
        }
        let (ours, theirs) = (self.state(), other.state());
        let order = ours.version().causal_cmp(theirs.version());
        if order.is_some_and(|order| order.is_ge()) && ours.covers(theirs) {
            return self.clone();
        }
        if order.is_some_and(|order| order.is_le()) && theirs.covers(ours) {
            return other.clone();
        }
        let mut merged = ours.clone();
        merged.merge(theirs);
        Self::new(merged)
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.state().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        GossipState::deserialize(deserializer).map(Self::new)
    }
}
