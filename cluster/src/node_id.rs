use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Address;

/// Which life of an address this is. A later life has a higher number, so an old one is recognised as old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The incarnation of a life that starts now: microseconds of the wall clock. Should the clock have gone back
    /// across a restart, the cluster says so on joining and the node takes a number above the one remembered.
    pub fn now() -> Self {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Self(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX / 2))
    }

    /// The next life after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Who a node is: its address and which life of that address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId {
    /// Where the node is reached.
    pub address: Address,
    /// Which life of that address.
    pub incarnation: Incarnation,
}

impl NodeId {
    /// Puts the two parts together.
    pub fn new(address: Address, incarnation: Incarnation) -> Self {
        Self { address, incarnation }
    }

    /// The short name of this node: its place on the monitoring ring and its key in the vector clock.
    pub fn key(&self) -> NodeKey {
        let mut hash = Sha256::new();
        hash.update(self.address.host().as_bytes());
        hash.update(self.address.port().to_be_bytes());
        hash.update(self.incarnation.0.to_be_bytes());
        let bytes: [u8; 32] = hash.finalize().into();
        NodeKey(u64::from_be_bytes(std::array::from_fn(|i| bytes[i])))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.address, self.incarnation)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A 64-bit hash of a [`NodeId`]: 8 bytes instead of an address wherever only identity or a fair order is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeKey(pub u64);
