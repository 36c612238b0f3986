use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::{Key, LeaseId};

/// What the store holds under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub key: Key,
    /// What was written, byte for byte.
    pub value: Bytes,
    /// Changes with every write, and with delete-and-recreate.
    pub version: Version,
    /// When it was created, in the store's own counting: strictly increasing over the whole store's life, never
    /// reused, unchanged by updates. The order among siblings, and the fencing token of a leader.
    pub created: u64,
    /// The lease with which it ends; `None` for a persistent entry.
    pub lease: Option<LeaseId>,
}

/// Which state of which incarnation of an entry: opaque, for conditional writes.
///
/// Equal only for the very same write of the same incarnation. It can be shown and parsed again, so that it survives
/// a trip through a command line; there is no order among versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    incarnation: u64,
    write: u64,
}

/// A string that no [`Version`] has shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a version: {0:?}; a version looks like 1f.2a and comes from an entry")]
pub struct ParseVersionError(String);

// === impl Version ===

impl Version {
    /// For drivers: two numbers that together never repeat for a key.
    pub const fn new(incarnation: u64, write: u64) -> Version {
        Version { incarnation, write }
    }

    /// For drivers: the two numbers given to [`Version::new`].
    pub const fn parts(self) -> (u64, u64) {
        (self.incarnation, self.write)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}", self.incarnation, self.write)
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Version, ParseVersionError> {
        let parse = || {
            let (incarnation, write) = text.split_once('.')?;
            let number = |part| u64::from_str_radix(part, 16).ok();
            Some(Version::new(number(incarnation)?, number(write)?))
        };
        parse().ok_or_else(|| ParseVersionError(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_survives_text() {
        let version = Version::new(31, u64::MAX);
        assert_eq!(version.to_string().parse(), Ok(version));
        for bad in ["", "1", "1.", ".1", "1.2.3", "x.y", "-1.2"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }
}
