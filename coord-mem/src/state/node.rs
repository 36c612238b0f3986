use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use coord_api::{Entry, Key, LeaseId, Nonce, Version};

/// What the store keeps of an entry.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Bytes,
    pub(super) created: u64,
    pub(super) written: u64,
    pub(super) lease: Option<LeaseId>,
    /// The create that made it; `None` for a parent that came along with another create.
    pub(super) nonce: Option<Nonce>,
}

/// The children of one key. Kept apart from the nodes, because the root has children and is no entry.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// Hashed, so that the hundred-thousandth sibling costs no more than the first. Sorted whenever it is listed.
    pub(super) all: HashSet<Key>,
    /// The sequential ones in the order of their creation.
    pub(super) sequential: BTreeMap<u64, Key>,
}

impl Node {
    pub(super) fn version(&self) -> Version {
        Version::new(self.created, self.written)
    }

    pub(super) fn entry(&self, key: &Key) -> Entry {
        Entry {
            key: key.clone(),
            value: self.value.clone(),
            version: self.version(),
            created: self.created,
            lease: self.lease,
        }
    }
}

impl Children {
    pub(super) fn insert(&mut self, key: &Key, created: u64) {
        self.all.insert(key.clone());
        if key.is_sequential() {
            self.sequential.insert(created, key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &Key, created: u64) {
        self.all.remove(key);
        self.sequential.remove(&created);
    }

    /// By name, whatever the order of the hashes.
    pub(super) fn sorted(&self) -> Vec<&Key> {
        let mut keys: Vec<_> = self.all.iter().collect();
        keys.sort_unstable();
        keys
    }
}
