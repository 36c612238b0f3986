mod arrivals;
mod entries;
mod fences;
mod leases;
mod node;
mod watchers;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use coord_api::driver::WatchSender;
use coord_api::{Entry, Error, Instant, Key, LeaseId, Operation, Result, Target};

pub(crate) use arrivals::Arrival;
use arrivals::Arrivals;
pub(crate) use entries::entry_key;
use fences::Fences;
use leases::Leases;
pub(crate) use leases::{Extension, owner};
use node::{Children, Node};
pub(crate) use watchers::WatchId;
use watchers::Watchers;

/// The number of a client within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

/// Everything the store knows: plain data, changed by one request at a time, with no clock of its own.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The store's counter: rises with every write, never comes back. Source of `created` and of versions.
    writes: u64,
    clients: u64,
    /// Hashed, and only ever looked up: what is unrelated costs nothing.
    nodes: HashMap<Key, Node>,
    children: HashMap<Key, Children>,
    leases: Leases,
    watchers: Watchers,
    arrivals: Arrivals,
    fences: Fences,
    /// Clients whose connection is down.
    unreachable: BTreeSet<ClientId>,
    /// Clients that were closed: no watch of theirs starts any more.
    ended: BTreeSet<ClientId>,
    /// Clients whose close has arrived: no lease is granted to them any more.
    closed: BTreeSet<ClientId>,
    /// When the timer will look, so that it is woken only for something earlier.
    pub(crate) timer_set_for: Option<Instant>,
}

impl State {
    pub(crate) fn add_client(&mut self) -> ClientId {
        self.clients += 1;
        ClientId(self.clients)
    }

    /// Lets everything happen that is due by `now`, in the order of its time.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            match self.leases.next_end() {
                // At the same moment the end of a lease comes first: the request finds it dead.
                Some((ends, lease)) if ends == due => self.end_lease(lease),
                _ => {
                    if let Some(arrival) = self.arrivals.pop() {
                        arrival(self, due);
                    }
                }
            }
        }
    }

    /// When something happens by itself next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let lease = self.leases.next_end().map(|(ends, _)| ends);
        lease.into_iter().chain(self.arrivals.next_at()).min()
    }

    pub(crate) fn arrive_at(&mut self, at: Instant, arrival: Arrival) {
        self.arrivals.push(at, arrival);
    }

    // Leases

    pub(crate) fn grant(&mut self, client: ClientId, ttl: Duration, extension: Extension) -> Result<LeaseId> {
        if self.closed.contains(&client) {
            return Err(Error::closed(Operation::Grant, None));
        }
        Ok(self.leases.grant(client, ttl, extension))
    }

    /// Extends a live lease and tells its ttl.
    pub(crate) fn renew(&mut self, client: ClientId, lease: LeaseId, extension: Extension) -> Result<Duration> {
        let ttl = self.leases.check(Operation::Renew, None, client, lease)?.ttl;
        self.leases.renew(lease, extension);
        Ok(ttl)
    }

    pub(crate) fn revoke(&mut self, client: ClientId, lease: LeaseId) -> Result<()> {
        match self.leases.check(Operation::Revoke, None, client, lease) {
            Err(error) if !error.is_lease_lost() => return Err(error),
            _ => self.end_lease(lease),
        }
        Ok(())
    }

    /// The lease and what is bound to it go.
    pub(crate) fn end_lease(&mut self, lease: LeaseId) {
        let Some(ended) = self.leases.remove(lease) else { return };
        for key in ended.entries {
            self.remove_node(&key);
        }
    }

    pub(crate) fn end_lease_when_proof_ends(&mut self, lease: LeaseId) {
        self.leases.end_when_proof_ends(lease);
    }

    // Watches

    pub(crate) fn watch(&mut self, client: ClientId, id: WatchId, target: Target, sender: WatchSender) -> Result<()> {
        if self.ended.contains(&client) {
            return Err(Error::closed(Operation::Watch, Some(target.key())));
        }
        sender.state(self.snapshot(&target));
        self.watchers
            .add(client, id, target, sender, !self.is_reachable(client));
        Ok(())
    }

    pub(crate) fn unwatch(&mut self, id: WatchId, target: &Target) {
        self.watchers.remove(id, target);
    }

    pub(crate) fn watch_count(&self) -> usize {
        self.watchers.count()
    }

    /// As after a gap that cannot be bridged: each watch of the client gets the whole state anew.
    pub(crate) fn resync(&self, client: ClientId) {
        for (id, target) in self.watchers.targets_of(client) {
            self.watchers.resync(id, &target, self.snapshot(&target));
        }
    }

    fn snapshot(&self, target: &Target) -> Vec<Entry> {
        match target {
            Target::Key(key) => self.get(key).into_iter().collect(),
            Target::Children(key) => self.children(key),
        }
    }

    // Connections

    pub(crate) fn is_reachable(&self, client: ClientId) -> bool {
        !self.unreachable.contains(&client)
    }

    pub(crate) fn disconnect(&mut self, client: ClientId) {
        self.unreachable.insert(client);
        self.watchers.set_deaf(client, true);
    }

    pub(crate) fn reconnect(&mut self, client: ClientId) {
        if self.unreachable.remove(&client) {
            self.watchers.set_deaf(client, false);
            self.resync(client);
        }
    }

    /// The client's watches end, whether or not the store hears of it.
    pub(crate) fn end_watches(&mut self, client: ClientId) {
        self.ended.insert(client);
        self.watchers.end_client(client);
    }

    pub(crate) fn close(&mut self, client: ClientId) {
        self.closed.insert(client);
        self.leases
            .of_client(client)
            .into_iter()
            .for_each(|lease| self.end_lease(lease));
    }

    pub(crate) fn end_all_watches(&mut self) {
        self.watchers.end_all();
    }
}
