use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coord_api::{Key, Nonce};

/// How many entries are remembered; for one that is not, a conditional write costs one read more.
const REMEMBERED: usize = 4096;

/// What a conditional write has to know about an incarnation besides its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) czxid: i64,
    /// The nonce in its envelope, which an update keeps.
    pub(crate) nonce: Option<Nonce>,
    /// The guard's version at a moment when this incarnation was there: while the guard has not moved, no other one
    /// is. `None` for sequential names, which are never used again.
    pub(crate) guard: Option<i32>,
}

/// Incarnations of which this coordinator knows enough to write without reading first.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Key, Incarnation>,
    order: VecDeque<Key>,
}

impl Known {
    pub(crate) fn get(&self, key: &Key, czxid: i64) -> Option<Incarnation> {
        self.lock()
            .entries
            .get(key)
            .copied()
            .filter(|known| known.czxid == czxid)
    }

    pub(crate) fn put(&self, key: &Key, known: Incarnation) {
        let mut inner = self.lock();
        if inner.entries.insert(key.clone(), known).is_none() {
            inner.order.push_back(key.clone());
        }
        while inner.order.len() > REMEMBERED {
            if let Some(oldest) = inner.order.pop_front() {
                inner.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn forget(&self, key: &Key) {
        // Its place in the queue stays, which at worst forgets a later one of the same name early.
        self.lock().entries.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_incarnation_is_known_and_memory_is_bounded() {
        let known = Known::default();
        let key = |n: usize| Key::new(format!("/k{n}")).unwrap();
        let incarnation = |czxid| Incarnation {
            czxid,
            nonce: None,
            guard: Some(1),
        };
        known.put(&key(0), incarnation(5));
        assert_eq!(known.get(&key(0), 5), Some(incarnation(5)));
        assert_eq!(known.get(&key(0), 6), None);
        for n in 0..=REMEMBERED {
            known.put(&key(n), incarnation(7));
        }
        assert_eq!(known.get(&key(0), 7), None);
        known.forget(&key(1));
        assert_eq!(known.lock().entries.len(), REMEMBERED - 1);
        assert_eq!(known.lock().order.len(), REMEMBERED);
    }
}
