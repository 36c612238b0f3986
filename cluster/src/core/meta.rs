use std::time::Duration;

use super::Core;

/// The largest meta value; the state travels whole, so it has to stay small.
pub const MAX_META_BYTES: usize = 16 * 1024;
/// The most meta entries, removed ones included.
pub const MAX_META_ENTRIES: usize = 256;
/// The most bytes of all keys and values together: far from what one frame can carry.
pub const MAX_META_TOTAL: usize = 256 * 1024;
const MAX_META_KEY: usize = 255;

/// Why a value was not stored in the gossip state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// There is no state to store it in.
    #[error("this node is in no cluster; join one first")]
    NotAMember,
    /// The key or the value is too long.
    #[error("a key may have {MAX_META_KEY} bytes and a value {MAX_META_BYTES}")]
    TooLarge,
    /// All entries or all bytes are taken.
    #[error("the state holds {MAX_META_ENTRIES} entries or {MAX_META_TOTAL} bytes at most; remove some values first")]
    Full,
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

impl Core {
    /// Whether [`Input::SetMeta`](crate::Input::SetMeta) would store this; what does not fit is ignored.
    ///
    /// # Errors
    /// Why it would not.
    pub fn may_set_meta(&self, key: &str, value: Option<&[u8]>) -> Result<(), MetaError> {
        let meta = self.snapshot().ok_or(MetaError::NotAMember)?.state().meta();
        let length = value.map_or(0, <[u8]>::len);
        if key.len() > MAX_META_KEY || length > MAX_META_BYTES {
            return Err(MetaError::TooLarge);
        }
        let room = meta.entries() < MAX_META_ENTRIES || meta.contains(&key.to_owned());
        let others = meta.iter().filter(|(other, _)| *other != key);
        let total: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        if value.is_some() && (!room || total + key.len() + length > MAX_META_TOTAL) {
            return Err(MetaError::Full);
        }
        Ok(())
    }

    pub(super) fn set_meta(&mut self, key: String, value: Option<Vec<u8>>, now: Duration) {
        // Removing what never was would leave an entry behind for nothing.
        let known = |core: &Self| {
            core.snapshot()
                .is_some_and(|snapshot| snapshot.state().meta().contains(&key))
        };
        if self.may_set_meta(&key, value.as_deref()).is_ok() && (value.is_some() || known(self)) {
            let writer = self.key;
            self.update(now, |state| state.set_meta(key, value, writer));
        }
    }
}
