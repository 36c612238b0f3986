use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::NodeKey;
use crate::digest::{Digest, Kind};

/// A map whose entries are merged by the last write: the higher stamp wins, and the writer's key breaks a tie.
/// A removed entry stays as a stamp without a value, so that an older write does not bring it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Ord + Deserialize<'de>, V: Deserialize<'de>"))]
pub struct LwwMap<K: Ord, V> {
    entries: BTreeMap<K, Write<V>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Write<V> {
    stamp: u64,
    writer: NodeKey,
    value: Option<V>,
}

impl<K: Ord, V> Default for LwwMap<K, V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone + Serialize, V: Clone + Ord + Serialize> LwwMap<K, V> {
    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).and_then(|write| write.value.as_ref())
    }

    /// The entries that have a value, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries
            .iter()
            .filter_map(|(key, write)| write.value.as_ref().map(|value| (key, value)))
    }

    /// Whether there is an entry for `key`, be it that of a removed value.
    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// How many entries are kept, removed ones included.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn set(&mut self, key: K, value: Option<V>, writer: NodeKey, kind: Kind, digest: &mut Digest) {
        let stamp = self.entries.get(&key).map_or(1, |write| write.stamp.saturating_add(1));
        self.put(key, Write { stamp, writer, value }, kind, digest);
    }

    pub(crate) fn merge(&mut self, other: &Self, kind: Kind, digest: &mut Digest) {
        for (key, theirs) in &other.entries {
            if self.entries.get(key).is_none_or(|ours| ours < theirs) {
                self.put(key.clone(), theirs.clone(), kind, digest);
            }
        }
    }

    pub(crate) fn covers(&self, other: &Self) -> bool {
        other
            .entries
            .iter()
            .all(|(key, theirs)| self.entries.get(key).is_some_and(|ours| ours >= theirs))
    }

    pub(crate) fn add_to(&self, kind: Kind, digest: &mut Digest) {
        for entry in &self.entries {
            digest.add(kind, &entry);
        }
    }

    fn put(&mut self, key: K, write: Write<V>, kind: Kind, digest: &mut Digest) {
        digest.add(kind, &(&key, &write));
        if let Some(old) = self.entries.insert(key.clone(), write) {
            digest.remove(kind, &(&key, &old));
        }
    }
}
