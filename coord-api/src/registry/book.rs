use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::Status;
use super::job::{Done, Held, Known, Outcome};
use crate::{Entry, Key, LeaseId, WatchEvent};

/// The desired state, and what is known of the actual one: the one map that everything goes by.
#[derive(Debug, Default)]
pub(super) struct Book {
    records: BTreeMap<Key, Record>,
    /// What is to be put, by the shard whose lease it needs.
    puts: BTreeMap<usize, BTreeSet<Key>>,
    /// What is to be removed, which needs no lease.
    removals: BTreeSet<Key>,
    in_flight: usize,
    /// The latest `created` of this incarnation.
    newest: u64,
    /// How many wanted entries each service has.
    services: BTreeMap<Key, usize>,
    services_changed: bool,
    /// No further wishes.
    closed: bool,
}

#[derive(Debug)]
struct Record {
    /// The value that should be there; `None`: nothing should.
    want: Option<Bytes>,
    known: Known,
    status: Status,
    /// Which of the leases carries it.
    shard: usize,
    in_flight: bool,
    /// It is to be looked at once more when it is no longer in flight.
    again: bool,
    /// What was told of it while it was in flight.
    events: Events,
}

/// What a watch told about a key that is being worked on, to be weighed when that is done.
#[derive(Debug, Default)]
struct Events {
    /// The latest state seen.
    latest: Option<Sighting>,
    /// A whole state without it.
    absent: bool,
}

#[derive(Debug)]
enum Sighting {
    Put(Entry),
    Delete(u64),
}

// === impl Book ===

impl Book {
    /// Wants this value there. False if the registry is closed.
    pub(super) fn want(&mut self, key: &Key, value: Bytes) -> bool {
        if self.closed {
            return false;
        }
        let record = self.records.entry(key.clone()).or_default();
        if record.want.as_ref() == Some(&value) {
            return true;
        }
        let new = record.want.replace(value).is_none();
        record.status = Status::Pending { error: None };
        self.mark(key);
        if let Some(service) = key.parent().filter(|_| new) {
            let entries = self.services.entry(service).or_default();
            *entries += 1;
            self.services_changed |= *entries == 1;
        }
        true
    }

    /// Wants nothing there. False if nothing was wanted.
    pub(super) fn forget(&mut self, key: &Key) -> bool {
        let Some(record) = self.records.get_mut(key).filter(|record| record.want.is_some()) else {
            return false;
        };
        record.want = None;
        self.mark(key);
        if let Some(service) = key.parent()
            && let Some(entries) = self.services.get_mut(&service)
        {
            *entries -= 1;
            if *entries == 0 {
                self.services.remove(&service);
                self.services_changed = true;
            }
        }
        true
    }

    /// The services with wanted entries, if they are others than when this was asked last.
    pub(super) fn services_if_changed(&mut self) -> Option<BTreeSet<Key>> {
        std::mem::take(&mut self.services_changed).then(|| self.services.keys().cloned().collect())
    }

    /// An entry of an older incarnation that nobody wants any more.
    fn purge(&mut self, entry: Entry) {
        let key = entry.key.clone();
        let record = Record {
            known: Known {
                held: Some(Held::of(entry)),
                ..Known::default()
            },
            ..Record::default()
        };
        self.records.insert(key.clone(), record);
        self.mark(&key);
    }

    /// Nothing is wanted any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        let wanted: Vec<Key> = self.wanted().cloned().collect();
        for key in &wanted {
            self.forget(key);
        }
    }

    pub(super) fn is_wanted(&self, key: &Key) -> bool {
        self.records.get(key).is_some_and(|record| record.want.is_some())
    }

    /// The keys that should be there, in order.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Key> {
        self.records
            .iter()
            .filter(|(_, record)| record.want.is_some())
            .map(|(key, _)| key)
    }

    pub(super) fn status(&self, key: &Key) -> Option<Status> {
        let record = self.records.get(key).filter(|record| record.want.is_some())?;
        Some(record.status.clone())
    }

    /// Whether nothing is left to do.
    pub(super) fn is_settled(&self) -> bool {
        self.removals.is_empty() && self.puts.values().all(BTreeSet::is_empty) && self.in_flight == 0
    }

    /// Everything on this shard is to be looked at: it has another lease.
    pub(super) fn shard_changed(&mut self, shard: usize) {
        let on_it = |(_, record): &(&Key, &mut Record)| record.shard == shard && record.want.is_some();
        let mut keys = Vec::new();
        for (key, record) in self.records.iter_mut().filter(on_it) {
            record.status = Status::Pending { error: None };
            keys.push(key.clone());
        }
        keys.iter().for_each(|key| self.mark(key));
    }

    /// It is to be looked at.
    fn mark(&mut self, key: &Key) {
        let Some(record) = self.records.get_mut(key) else {
            return;
        };
        if record.in_flight {
            record.again = true;
            return;
        }
        let put = record.want.is_some();
        let puts = self.puts.entry(record.shard).or_default();
        match put {
            true => {
                self.removals.remove(key);
                puts.insert(key.clone());
            }
            false => {
                puts.remove(key);
                self.removals.insert(key.clone());
            }
        }
    }

    /// A key that needs work and that `lease_of` has a lease for (removals need none), marked as taken.
    pub(super) fn take(&mut self, lease_of: impl Fn(usize) -> Option<LeaseId>) -> Option<Taken> {
        let put = |(shard, keys): (&usize, &mut BTreeSet<Key>)| {
            let lease = lease_of(*shard).filter(|_| !keys.is_empty())?;
            Some((keys.pop_first()?, Some(lease)))
        };
        let removal = self.removals.pop_first().map(|key| (key, None));
        let (key, lease) = removal.or_else(|| self.puts.iter_mut().find_map(put))?;
        let newest = self.newest;
        let record = self.records.get_mut(&key)?;
        record.in_flight = true;
        record.again = false;
        record.events = Events::default();
        self.in_flight += 1;
        Some(Taken {
            lease,
            want: record.want.clone(),
            known: record.known.clone(),
            newest,
            key,
        })
    }

    /// What became of a job. Returns the shard that it ran on.
    pub(super) fn done(&mut self, done: Done) -> Option<usize> {
        self.in_flight -= 1;
        let record = self.records.get_mut(&done.key)?;
        record.in_flight = false;
        record.known = done.known;
        let shard = record.shard;
        let settled = match done.outcome {
            Outcome::Settled => {
                let settled = record.as_wanted(done.lease);
                if let Some(held) = record.known.held.as_ref().filter(|_| settled) {
                    self.newest = self.newest.max(held.created);
                    record.status = Status::Registered;
                }
                settled
            }
            Outcome::Taken(by) => {
                record.status = by;
                true
            }
            Outcome::Failed(error) => {
                record.status = Status::Pending {
                    error: Some(error.to_string()),
                };
                false
            }
            Outcome::Full | Outcome::NoLease | Outcome::Again => false,
        };
        if record.want.is_none() && settled && !record.again {
            self.records.remove(&done.key);
            return Some(shard);
        }
        let events = std::mem::take(&mut record.events);
        let doubted = events.absent || events.latest.is_some_and(|sighting| record.contradicts(&sighting));
        record.known.suspect |= doubted;
        if doubted || !settled || record.again {
            self.mark(&done.key);
        }
        Some(shard)
    }

    /// The job's key goes to another shard.
    pub(super) fn move_to(&mut self, key: &Key, shard: usize) {
        if let Some(record) = self.records.get_mut(key) {
            let before = std::mem::replace(&mut record.shard, shard);
            if let Some(puts) = self.puts.get_mut(&before) {
                puts.remove(key);
            }
            self.mark(key);
        }
    }

    /// What a watch on the children of `service` tells. `own_older` says which entries are leftovers of an older
    /// incarnation; they go when the watch first sees them and nobody wants them.
    pub(super) fn saw(&mut self, service: &Key, event: WatchEvent, own_older: impl Fn(&Entry) -> bool) {
        match event {
            WatchEvent::Put(entry) => self.sighted(entry.key.clone(), Sighting::Put(entry)),
            WatchEvent::Delete { key, created } => self.sighted(key, Sighting::Delete(created)),
            WatchEvent::State(entries) => {
                let older = entries
                    .iter()
                    .filter(|entry| !self.records.contains_key(&entry.key) && own_older(entry));
                let older: Vec<Entry> = older.cloned().collect();
                older.into_iter().for_each(|entry| self.purge(entry));
                self.saw_all(service, entries);
            }
            WatchEvent::Resync(entries) => self.saw_all(service, entries),
        }
    }

    fn saw_all(&mut self, service: &Key, entries: Vec<Entry>) {
        let present: BTreeSet<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
        for entry in entries {
            self.sighted(entry.key.clone(), Sighting::Put(entry));
        }
        let absent = |key: &&Key| key.is_child_of(service) && !present.contains(*key);
        let absent: Vec<Key> = self.records.keys().filter(absent).cloned().collect();
        for key in absent {
            let Some(record) = self.records.get_mut(&key) else {
                continue;
            };
            if record.in_flight {
                record.events.absent = true;
            } else {
                record.known.suspect |= record.known.held.is_some();
                self.mark(&key);
            }
        }
    }

    fn sighted(&mut self, key: Key, sighting: Sighting) {
        let Some(record) = self.records.get_mut(&key) else {
            return;
        };
        if record.in_flight {
            record.events.latest = Some(sighting);
        } else if record.contradicts(&sighting) {
            record.known.suspect = true;
            self.mark(&key);
        }
    }
}

/// A key that was taken to be worked on.
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) want: Option<Bytes>,
    pub(super) lease: Option<LeaseId>,
    pub(super) known: Known,
    pub(super) newest: u64,
}

// === impl Record ===

impl Default for Record {
    fn default() -> Record {
        Record {
            want: None,
            known: Known::default(),
            status: Status::Pending { error: None },
            shard: 0,
            in_flight: false,
            again: false,
            events: Events::default(),
        }
    }
}

impl Record {
    /// Whether what was written is what is wanted by now.
    fn as_wanted(&self, lease: Option<LeaseId>) -> bool {
        match (&self.want, &self.known.held) {
            (None, held) => held.is_none(),
            (Some(want), Some(held)) => held.value == want && held.lease == lease,
            (Some(_), None) => false,
        }
    }

    /// Whether a watch tells something else than is known.
    fn contradicts(&self, sighting: &Sighting) -> bool {
        match (sighting, &self.known.held) {
            // What was in the way is gone, or another is there: try again.
            (_, None) => true,
            (Sighting::Put(entry), Some(held)) => {
                entry.created > held.created || (entry.created == held.created && entry.value != held.value)
            }
            (Sighting::Delete(created), Some(held)) => *created >= held.created,
        }
    }
}
