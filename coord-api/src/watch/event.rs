use crate::{Entry, Key};

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// One key, whether it exists or not.
    Key(Key),
    /// The immediate children of a key, with their values; the key itself need not exist.
    Children(Key),
}

/// What a [`Watch`](crate::Watch) tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The whole state, once, first: the entry, if it exists, or the children, ordered by name.
    State(Vec<Entry>),
    /// The entry was created or changed. A new [`created`](Entry::created) means that it was deleted in between.
    Put(Entry),
    /// The entry is gone.
    Delete {
        /// Its name.
        key: Key,
        /// Its [`created`](Entry::created).
        created: u64,
    },
    /// The whole state anew, because what happened in between cannot be told: what is not in it is gone.
    Resync(Vec<Entry>),
}

// === impl Target ===

impl Target {
    /// The key that was named.
    pub fn key(&self) -> &Key {
        match self {
            Target::Key(key) | Target::Children(key) => key,
        }
    }

    /// Whether an entry of this name belongs to what is watched.
    pub fn covers(&self, key: &Key) -> bool {
        match self {
            Target::Key(target) => target == key,
            Target::Children(parent) => key.is_child_of(parent),
        }
    }

    pub(crate) fn map_key<E>(&self, map: impl FnOnce(&Key) -> Result<Key, E>) -> Result<Target, E> {
        Ok(match self {
            Target::Key(key) => Target::Key(map(key)?),
            Target::Children(key) => Target::Children(map(key)?),
        })
    }
}

// === impl WatchEvent ===

impl WatchEvent {
    pub(crate) fn map_keys(mut self, map: impl Fn(&Key) -> Key) -> WatchEvent {
        match &mut self {
            WatchEvent::State(entries) | WatchEvent::Resync(entries) => {
                entries.iter_mut().for_each(|entry| entry.key = map(&entry.key));
            }
            WatchEvent::Put(entry) => entry.key = map(&entry.key),
            WatchEvent::Delete { key, .. } => *key = map(key),
        }
        self
    }
}
