use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coord_api::{Key, Nonce};

use crate::guard;
use crate::run::Run;

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
    /// By the guard's number.
    runs: HashMap<u64, Run>,
    order: VecDeque<Key>,
}

impl Known {
    pub(crate) fn get(&self, key: &Key, czxid: i64) -> Option<Incarnation> {
        let inner = self.lock();
        let mut known = inner.entries.get(key).copied().filter(|known| known.czxid == czxid)?;
        if let (Some(guard), Some(run)) = (&mut known.guard, inner.runs.get(&guard::number(key))) {
            *guard = run.newest(*guard);
        }
        Some(known)
    }

    /// Where the guard of this key stood when we last heard of it.
    pub(crate) fn guard(&self, key: &Key) -> Option<i32> {
        self.lock().runs.get(&guard::number(key)).map(Run::latest)
    }

    /// The guard of this key was seen at this version.
    pub(crate) fn saw_guard(&self, key: &Key, version: i32) {
        let mut inner = self.lock();
        let run = inner.runs.entry(guard::number(key));
        run.or_insert_with(|| Run::new(version)).seen(version);
    }

    /// We made it ourselves, and thereby moved the guard.
    pub(crate) fn made(&self, key: &Key, known: Incarnation) {
        self.note(key, known, Run::ours);
    }

    /// It was there, with the guard where the incarnation says.
    pub(crate) fn seen(&self, key: &Key, known: Incarnation) {
        self.note(key, known, Run::seen);
    }

    /// Both in one step: nobody may rely on the new version of the guard for what stood there before. What was seen
    /// before something else that we know of is late news, and makes us forget instead.
    fn note(&self, key: &Key, known: Incarnation, moved: fn(&mut Run, i32)) {
        let mut inner = self.lock();
        let Some(version) = known.guard else {
            return inner.put(key, known);
        };
        let run = inner
            .runs
            .entry(guard::number(key))
            .or_insert_with(|| Run::new(version));
        let newest = run.is_newest(version);
        moved(run, version);
        if newest {
            inner.put(key, known);
        } else {
            inner.entries.remove(key);
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

impl Inner {
    fn put(&mut self, key: &Key, known: Incarnation) {
        if self.entries.insert(key.clone(), known).is_none() {
            self.order.push_back(key.clone());
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
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
        known.seen(&key(0), incarnation(5));
        assert_eq!(known.get(&key(0), 5), Some(incarnation(5)));
        assert_eq!(known.get(&key(0), 6), None);
        for n in 0..=REMEMBERED {
            known.seen(&key(n), incarnation(7));
        }
        assert_eq!(known.get(&key(0), 7), None);
        known.forget(&key(1));
        assert_eq!(known.lock().entries.len(), REMEMBERED - 1);
        assert_eq!(known.lock().order.len(), REMEMBERED);
    }

    #[test]
    fn a_later_create_of_our_own_is_relied_on_and_late_news_are_not() {
        let known = Known::default();
        let key = Key::new("/k").unwrap();
        let incarnation = |czxid, version| Incarnation {
            czxid,
            nonce: None,
            guard: Some(version),
        };
        known.made(&key, incarnation(1, 1));
        // Another key of the same guard, by us: the guard moves, and what we know of the first one holds.
        let number = guard::number(&key);
        known.lock().runs.get_mut(&number).unwrap().ours(2);
        assert_eq!(known.get(&key, 1), Some(incarnation(1, 2)));
        // A second incarnation whose answer is processed before that of a third: neither is relied on.
        known.lock().runs.get_mut(&number).unwrap().ours(4);
        known.made(&key, incarnation(3, 3));
        assert_eq!((known.get(&key, 1), known.get(&key, 3)), (None, None));
        known.seen(&key, incarnation(4, 4));
        assert_eq!(known.get(&key, 4), Some(incarnation(4, 4)));
    }
}
