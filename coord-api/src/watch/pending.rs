use std::collections::{BTreeMap, VecDeque};

use crate::{Entry, Error, Key, Result, WatchEvent};

/// What a reader has not taken yet, merged to the latest per key: never more than the keys that are watched.
#[derive(Default)]
pub(super) struct Pending {
    /// The whole state, if it is still to be delivered.
    whole: Option<BTreeMap<Key, Entry>>,
    /// Whether a whole state was delivered before: then the next one is a `Resync`.
    started: bool,
    /// The latest change per key, and the keys in the order of their oldest undelivered change.
    changes: BTreeMap<Key, WatchEvent>,
    order: VecDeque<Key>,
    end: Option<Error>,
    ended: bool,
}

impl Pending {
    pub(super) fn state(&mut self, entries: Vec<Entry>) {
        self.changes.clear();
        self.order.clear();
        self.whole = Some(entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect());
    }

    pub(super) fn put(&mut self, entry: Entry) {
        if let Some(whole) = &mut self.whole {
            whole.insert(entry.key.clone(), entry);
        } else {
            self.change(entry.key.clone(), WatchEvent::Put(entry));
        }
    }

    pub(super) fn delete(&mut self, key: Key, created: u64) {
        if let Some(whole) = &mut self.whole {
            whole.remove(&key);
        } else {
            self.change(key.clone(), WatchEvent::Delete { key, created });
        }
    }

    pub(super) fn end(&mut self, error: Error) {
        self.end.get_or_insert(error);
    }

    fn change(&mut self, key: Key, event: WatchEvent) {
        if self.changes.insert(key.clone(), event).is_none() {
            self.order.push_back(key);
        }
    }

    /// The next item: `Some(None)` is the end of the stream, `None` means that there is nothing yet.
    pub(super) fn take(&mut self) -> Option<Option<Result<WatchEvent>>> {
        if self.ended {
            return Some(None);
        }
        if let Some(whole) = self.whole.take() {
            let entries = whole.into_values().collect();
            let first = !std::mem::replace(&mut self.started, true);
            return Some(Some(Ok(if first {
                WatchEvent::State(entries)
            } else {
                WatchEvent::Resync(entries)
            })));
        }
        if let Some(event) = self.order.pop_front().and_then(|key| self.changes.remove(&key)) {
            return Some(Some(Ok(event)));
        }
        self.end.take().map(|error| {
            self.ended = true;
            Some(Err(error))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    fn entry(name: &str, created: u64) -> Entry {
        let key = Key::root().child(name).unwrap();
        Entry {
            key,
            value: "v".into(),
            version: Version::new(created, 0),
            created,
            lease: None,
        }
    }

    fn events(pending: &mut Pending) -> Vec<WatchEvent> {
        std::iter::from_fn(|| pending.take())
            .map(|item| item.unwrap().unwrap())
            .collect()
    }

    #[test]
    fn a_slow_reader_gets_the_latest_per_key() {
        let mut pending = Pending::default();
        pending.state(vec![]);
        assert_eq!(events(&mut pending), [WatchEvent::State(vec![])]);
        pending.put(entry("a", 1));
        pending.put(entry("b", 2));
        pending.delete(entry("a", 1).key, 1);
        pending.put(entry("a", 3));
        assert_eq!(
            events(&mut pending),
            [WatchEvent::Put(entry("a", 3)), WatchEvent::Put(entry("b", 2))]
        );
    }

    #[test]
    fn a_deletion_is_not_lost_by_merging() {
        let mut pending = Pending::default();
        pending.state(vec![entry("a", 1)]);
        events(&mut pending);
        pending.put(entry("a", 1));
        pending.delete(entry("a", 1).key, 1);
        assert_eq!(
            events(&mut pending),
            [WatchEvent::Delete {
                key: entry("a", 1).key,
                created: 1
            }]
        );
    }

    #[test]
    fn changes_merge_into_an_undelivered_state_and_a_second_state_is_a_resync() {
        let mut pending = Pending::default();
        pending.state(vec![entry("a", 1), entry("b", 2)]);
        pending.delete(entry("a", 1).key, 1);
        pending.put(entry("c", 3));
        assert_eq!(
            events(&mut pending),
            [WatchEvent::State(vec![entry("b", 2), entry("c", 3)])]
        );
        pending.put(entry("d", 4));
        pending.state(vec![entry("d", 4)]);
        assert_eq!(events(&mut pending), [WatchEvent::Resync(vec![entry("d", 4)])]);
    }
}
