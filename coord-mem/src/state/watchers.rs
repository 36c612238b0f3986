use std::collections::{BTreeMap, HashMap};

use coord_api::driver::WatchSender;
use coord_api::{Entry, Error, Key, Operation, Target};

use super::ClientId;

/// The number of a watch within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchId(pub(crate) u64);

/// Who watches what, found by what changed: the watchers of other keys cost a change nothing.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// Hashed, and only ever looked up.
    by_target: HashMap<Target, BTreeMap<WatchId, Watcher>>,
    by_client: BTreeMap<ClientId, BTreeMap<WatchId, Target>>,
}

#[derive(Debug)]
struct Watcher {
    client: ClientId,
    sender: WatchSender,
    /// Its client's connection is down: it hears nothing, and a whole new state once it is up again.
    deaf: bool,
}

// === impl Watchers ===

impl Watchers {
    pub(super) fn add(&mut self, client: ClientId, id: WatchId, target: Target, sender: WatchSender, deaf: bool) {
        self.by_client.entry(client).or_default().insert(id, target.clone());
        let watcher = Watcher { client, sender, deaf };
        self.by_target.entry(target).or_default().insert(id, watcher);
    }

    pub(super) fn remove(&mut self, id: WatchId, target: &Target) {
        let Some(watchers) = self.by_target.get_mut(target) else {
            return;
        };
        let removed = watchers.remove(&id);
        if watchers.is_empty() {
            self.by_target.remove(target);
        }
        if let Some(Watcher { client, .. }) = removed
            && let Some(targets) = self.by_client.get_mut(&client)
        {
            targets.remove(&id);
            if targets.is_empty() {
                self.by_client.remove(&client);
            }
        }
    }

    pub(super) fn put(&self, entry: &Entry) {
        self.tell(&entry.key, |sender| sender.put(entry.clone()));
    }

    pub(super) fn delete(&self, key: &Key, created: u64) {
        self.tell(key, |sender| sender.delete(key.clone(), created));
    }

    fn tell(&self, key: &Key, tell: impl Fn(&WatchSender)) {
        if self.by_target.is_empty() {
            return;
        }
        let parent = key.parent().map(Target::Children);
        for target in [Some(Target::Key(key.clone())), parent].into_iter().flatten() {
            let watchers = self.by_target.get(&target).into_iter().flat_map(BTreeMap::values);
            watchers
                .filter(|watcher| !watcher.deaf)
                .for_each(|watcher| tell(&watcher.sender));
        }
    }

    pub(super) fn targets_of(&self, client: ClientId) -> Vec<(WatchId, Target)> {
        let targets = self.by_client.get(&client).into_iter().flatten();
        targets.map(|(id, target)| (*id, target.clone())).collect()
    }

    pub(super) fn set_deaf(&mut self, client: ClientId, deaf: bool) {
        for (id, target) in self.targets_of(client) {
            if let Some(watcher) = self.by_target.get_mut(&target).and_then(|all| all.get_mut(&id)) {
                watcher.deaf = deaf;
            }
        }
    }

    pub(super) fn resync(&self, id: WatchId, target: &Target, entries: Vec<Entry>) {
        if let Some(watcher) = self.by_target.get(target).and_then(|all| all.get(&id))
            && !watcher.deaf
        {
            watcher.sender.state(entries);
        }
    }

    /// Ends all watches of a client.
    pub(super) fn end_client(&mut self, client: ClientId) {
        for (id, target) in self.targets_of(client) {
            if let Some(watcher) = self.by_target.get(&target).and_then(|all| all.get(&id)) {
                watcher.sender.end(Error::closed(Operation::Watch, Some(target.key())));
            }
            self.remove(id, &target);
        }
    }

    pub(super) fn end_all(&mut self) {
        let clients: Vec<_> = self.by_client.keys().copied().collect();
        clients.into_iter().for_each(|client| self.end_client(client));
    }

    pub(super) fn count(&self) -> usize {
        self.by_client.values().map(BTreeMap::len).sum()
    }
}
