use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coord_api::{Error, ErrorKind, Instant, Key, LeaseId, Operation, Result};

use super::ClientId;

/// A lease's number is its client's number and then its own: whose it is shows without a record of ended ones.
const OWN_BITS: u32 = 40;

/// All live leases, and when each ends.
#[derive(Debug, Default)]
pub(super) struct Leases {
    live: BTreeMap<LeaseId, Lease>,
    by_end: BTreeSet<(Instant, LeaseId)>,
    granted: BTreeMap<ClientId, u64>,
}

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) ttl: Duration,
    ends: Instant,
    /// Until here its client was told that it surely lives.
    proven: Instant,
    pub(super) entries: BTreeSet<Key>,
}

/// When a grant or renewal was sent, when it arrived, and how much less than the ttl its answer proves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extension {
    pub(crate) sent: Instant,
    pub(crate) arrived: Instant,
    pub(crate) proof_lag: Duration,
    /// The store's bad day: the lease ends where the proof does, not a ttl after the arrival.
    pub(crate) ends_early: bool,
}

// === impl Leases ===

impl Leases {
    pub(super) fn grant(&mut self, client: ClientId, ttl: Duration, extension: Extension) -> LeaseId {
        let granted = self.granted.entry(client).or_default();
        *granted += 1;
        let id = LeaseId((client.0 << OWN_BITS) | *granted);
        let proven = extension.proven(ttl);
        let lease = Lease {
            ttl,
            ends: extension.ends(ttl, proven),
            proven,
            entries: BTreeSet::new(),
        };
        self.by_end.insert((lease.ends, id));
        self.live.insert(id, lease);
        id
    }

    /// A later end, never an earlier one than was proven before.
    pub(super) fn renew(&mut self, id: LeaseId, extension: Extension) {
        let Some(lease) = self.live.get_mut(&id) else { return };
        lease.proven = lease.proven.max(extension.proven(lease.ttl));
        let ends = extension.ends(lease.ttl, lease.proven);
        self.set_end(id, ends);
    }

    /// The lease, if it is this client's and alive.
    pub(super) fn check(
        &self,
        operation: Operation,
        key: Option<&Key>,
        client: ClientId,
        id: LeaseId,
    ) -> Result<&Lease> {
        self.live.get(&id).filter(|_| owner(id) == client).ok_or_else(|| {
            let kind = if self.was_granted(client, id) {
                ErrorKind::LeaseLost(id)
            } else {
                ErrorKind::ForeignLease(id)
            };
            Error::definite(operation, key, kind)
        })
    }

    pub(super) fn was_granted(&self, client: ClientId, id: LeaseId) -> bool {
        let granted = self.granted.get(&client).copied().unwrap_or(0);
        let own = id.0 & ((1 << OWN_BITS) - 1);
        owner(id) == client && (1..=granted).contains(&own)
    }

    pub(super) fn of_client(&self, client: ClientId) -> Vec<LeaseId> {
        let first = LeaseId(client.0 << OWN_BITS);
        self.live
            .range(first..)
            .map(|(id, _)| *id)
            .take_while(|id| owner(*id) == client)
            .collect()
    }

    pub(super) fn attach(&mut self, id: LeaseId, key: &Key) {
        if let Some(lease) = self.live.get_mut(&id) {
            lease.entries.insert(key.clone());
        }
    }

    pub(super) fn detach(&mut self, id: LeaseId, key: &Key) {
        if let Some(lease) = self.live.get_mut(&id) {
            lease.entries.remove(key);
        }
    }

    /// Forgets the lease; what is bound to it is the caller's to remove.
    pub(super) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.live.remove(&id)?;
        self.by_end.remove(&(lease.ends, id));
        Some(lease)
    }

    /// The lease that ends next.
    pub(super) fn next_end(&self) -> Option<(Instant, LeaseId)> {
        self.by_end.first().copied()
    }

    /// Has it end as early as the proofs given allow.
    pub(super) fn end_when_proof_ends(&mut self, id: LeaseId) {
        if let Some(proven) = self.live.get(&id).map(|lease| lease.proven) {
            self.set_end(id, proven);
        }
    }

    fn set_end(&mut self, id: LeaseId, ends: Instant) {
        if let Some(lease) = self.live.get_mut(&id) {
            self.by_end.remove(&(lease.ends, id));
            lease.ends = ends;
            self.by_end.insert((ends, id));
        }
    }
}

// === impl Extension ===

impl Extension {
    fn proven(&self, ttl: Duration) -> Instant {
        self.sent + ttl.saturating_sub(self.proof_lag)
    }

    fn ends(&self, ttl: Duration, proven: Instant) -> Instant {
        if self.ends_early {
            proven
        } else {
            proven.max(self.arrived + ttl)
        }
    }
}

pub(crate) fn owner(id: LeaseId) -> ClientId {
    ClientId(id.0 >> OWN_BITS)
}
