use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A 128-bit fingerprint of a gossip state's content: the sum of the hashes of its entries, so that one changed entry
/// costs one hash and the order of changes does not matter.
///
/// Two states are the same version when their digests are equal; the vector clock says which of two different ones is
/// newer. Keeping identity out of the clock is what makes pruning it harmless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Digest([u8; 16]);

impl Digest {
    pub(crate) fn add<T: Serialize + ?Sized>(&mut self, kind: Kind, entry: &T) {
        self.0 = self.value().wrapping_add(entry_hash(kind, entry)).to_be_bytes();
    }

    pub(crate) fn remove<T: Serialize + ?Sized>(&mut self, kind: Kind, entry: &T) {
        self.0 = self.value().wrapping_sub(entry_hash(kind, entry)).to_be_bytes();
    }

    fn value(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

/// Which collection an entry belongs to, so that equal bytes in different collections have different hashes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Member = 1,
    Tombstone,
    Reachability,
    Successor,
    Meta,
    Partition,
    Pending,
}

fn entry_hash<T: Serialize + ?Sized>(kind: Kind, entry: &T) -> u128 {
    // The types of the state have no way to fail; should one ever be added that does, all nodes hash it alike.
    let bytes = postcard::to_stdvec(entry).unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update([kind as u8]);
    hash.update(&bytes);
    let digest: [u8; 32] = hash.finalize().into();
    u128::from_be_bytes(std::array::from_fn(|i| digest[i]))
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", (self.value() >> 64) as u64)
    }
}
