use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A set of (key, counter) pairs that orders updates made in different places.
///
/// An increment takes the number after the *highest* counter of the whole clock, not only after its own. That keeps
/// all properties of a vector clock (each key's counter only grows), and the counter also tells an entry's age:
/// pruning drops the entries that were written longest ago without a wall clock in every entry, and two replicas that
/// prune to the same size keep the same entries.
///
/// ```
/// use coord_cluster::VectorClock;
/// use std::cmp::Ordering;
///
/// let start = VectorClock::new();
/// let a = start.clone().incremented("a");
/// let b = start.incremented("b");
/// assert_eq!(a.causal_cmp(&b), None, "neither knew of the other");
/// let mut both = a.clone();
/// both.merge(&b);
/// assert_eq!(both.causal_cmp(&a), Some(Ordering::Greater));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Ord + Deserialize<'de>"))]
pub struct VectorClock<K: Ord> {
    entries: BTreeMap<K, u64>,
}

impl<K: Ord> Default for VectorClock<K> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> VectorClock<K> {
    /// A clock that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one update by `key`.
    pub fn increment(&mut self, key: K) {
        let next = self.entries.values().max().copied().unwrap_or(0).saturating_add(1);
        self.entries.insert(key, next);
    }

    /// The clock after one update by `key`.
    #[must_use]
    pub fn incremented(mut self, key: K) -> Self {
        self.increment(key);
        self
    }

    /// The counter of `key`, 0 when it has none.
    pub fn get(&self, key: &K) -> u64 {
        self.entries.get(key).copied().unwrap_or(0)
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.entries.iter().map(|(key, counter)| (key, *counter))
    }

    /// Takes the higher counter of each key.
    pub fn merge(&mut self, other: &Self) {
        for (key, counter) in &other.entries {
            match self.entries.get_mut(key) {
                Some(own) => *own = (*own).max(*counter),
                None => {
                    self.entries.insert(key.clone(), *counter);
                }
            }
        }
    }

    /// Drops the entry of a key that will never write again.
    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Keeps the `limit` entries that were written last. As with Riak's pruning the cost of dropping history is that
    /// an older clock may afterwards look concurrent instead of older, never that a newer one looks older to a reader
    /// that merges.
    pub fn prune(&mut self, limit: usize) {
        if self.entries.len() <= limit {
            return;
        }
        let mut by_age: Vec<(u64, K)> = self
            .entries
            .iter()
            .map(|(key, counter)| (*counter, key.clone()))
            .collect();
        by_age.sort();
        for (_, key) in by_age.drain(..self.entries.len() - limit) {
            self.entries.remove(&key);
        }
    }

    /// `Some(order)` when one clock has seen all that the other has, `None` when they are concurrent.
    pub fn causal_cmp(&self, other: &Self) -> Option<Ordering> {
        let ahead = self.entries.iter().any(|(key, counter)| *counter > other.get(key));
        let behind = other.entries.iter().any(|(key, counter)| *counter > self.get(key));
        match (ahead, behind) {
            (false, false) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (true, true) => None,
        }
    }
}
