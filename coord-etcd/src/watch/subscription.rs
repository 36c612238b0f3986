use std::collections::BTreeMap;

use coord_api::driver::WatchSender;
use coord_api::{Entry, Error, Key, Operation, Target};
use etcd_client::{Event, KeyValue};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::keyspace::{Keyspace, named, unsigned};

/// One watch, over all the streams that it lives through.
pub(super) struct Subscription {
    pub(super) target: Target,
    sender: WatchSender,
    ready: Option<oneshot::Sender<Result<(), Failure>>>,
    /// The name under which the reader cancels it.
    pub(super) ticket: u64,
    pub(super) phase: Phase,
    /// What the reader knows to be there, and when it was created: a deletion does not tell that.
    known: BTreeMap<Key, u64>,
}

pub(super) enum Phase {
    /// Asked for, or waiting for a stream.
    Creating,
    /// Live at the store since this revision; the state is being read, and the last event of each key waits.
    Reading(u64, BTreeMap<Key, KeyValue>),
    /// State delivered as of this revision; later events follow.
    Live(u64),
}

impl Subscription {
    pub(super) fn new(
        target: Target,
        sender: WatchSender,
        ready: oneshot::Sender<Result<(), Failure>>,
        ticket: u64,
    ) -> Subscription {
        Subscription {
            target,
            sender,
            ready: Some(ready),
            ticket,
            phase: Phase::Creating,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn events(&mut self, space: &Keyspace, events: &[Event]) {
        for kv in events.iter().filter_map(Event::kv) {
            let Some(key) = space.key(kv.key()).filter(|key| self.target.covers(key)) else {
                continue;
            };
            match &mut self.phase {
                Phase::Creating => {}
                Phase::Reading(_, waiting) => drop(waiting.insert(key, kv.clone())),
                Phase::Live(since) if unsigned(kv.mod_revision()) > *since => self.event(key, kv.clone()),
                Phase::Live(_) => {}
            }
        }
    }

    /// The state as of `revision`, and what happened after it.
    pub(super) fn state(&mut self, entries: Vec<Entry>, revision: u64) {
        let waiting = match std::mem::replace(&mut self.phase, Phase::Live(revision)) {
            Phase::Reading(_, waiting) => waiting,
            _ => BTreeMap::new(),
        };
        self.known = entries.iter().map(|entry| (entry.key.clone(), entry.created)).collect();
        self.sender.state(entries);
        for (key, kv) in waiting {
            if unsigned(kv.mod_revision()) > revision {
                self.event(key, kv);
            }
        }
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Ok(()));
        }
    }

    fn event(&mut self, key: Key, kv: KeyValue) {
        // Only a deletion has no create revision. (The event's own type cannot be read safely.)
        if kv.create_revision() == 0 {
            if let Some(created) = self.known.remove(&key) {
                self.sender.delete(key, created);
            }
        } else {
            let entry = named(key.clone(), kv);
            self.known.insert(key, entry.created);
            self.sender.put(entry);
        }
    }

    /// It is over, for a reason that will not go away.
    pub(super) fn refuse(mut self, failure: Failure) {
        match self.ready.take() {
            Some(ready) => {
                let _ = ready.send(Err(failure));
            }
            None => self
                .sender
                .end(failure.into_error(Operation::Watch, Some(self.target.key()))),
        }
    }

    /// Whether nobody has seen a state of it yet.
    pub(super) fn is_new(&self) -> bool {
        self.ready.is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.sender.is_cancelled()
    }
}

/// A reader must not wait for ever for a driver that is gone.
impl Drop for Subscription {
    fn drop(&mut self) {
        self.sender
            .end(Error::closed(Operation::Watch, Some(self.target.key())));
    }
}
