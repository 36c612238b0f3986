//! A simple model of the contract: one world that may be the true one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coord_api::{
    Bytes, Create, CreateMode, Entry, ErrorKind, Expect, Grant, Instant, Key, LeaseId, Nonce, Standing, Version,
};

/// What a client asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Renew(LeaseId),
    Revoke(LeaseId),
    Create(Create),
    Abandon(Create),
    Get(Key),
    Children(Key),
    Update(Key, Bytes, Expect),
    Delete(Key, Expect),
    Standing(Entry),
}

/// What the store answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Renewed(Grant),
    Done,
    Entry(Entry),
    Found(Option<Entry>),
    Entries(Vec<Entry>),
    Standing(Standing),
}

/// What the model expects; entries by their keys, because some of their numbers are known only once they were seen.
enum Expected {
    Renewed(LeaseId),
    Done,
    Entry(Key),
    Found(Option<Key>),
    Entries(Vec<Key>),
    Standing(Option<Key>, Option<Key>),
    Exists(Key),
    NotFound,
    Mismatch(Key),
    NotEmpty,
    EphemeralParent(Key),
    LeaseLost(LeaseId),
    Abandoned,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct World {
    entries: BTreeMap<Key, Held>,
    leases: BTreeMap<LeaseId, Life>,
    fenced: BTreeSet<Nonce>,
    /// Requests of unknown outcome that may have arrived or still arrive, each until its moment.
    maybe: Vec<(Request, Instant)>,
    writes: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Held {
    value: Bytes,
    nonce: Option<Nonce>,
    lease: Option<LeaseId>,
    /// The place in the model's own order of creation.
    order: u64,
    created: Option<u64>,
    version: Option<Version>,
}

/// A lease may end from `sure` on, and has ended at `longest`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Life {
    ttl: Duration,
    sure: Instant,
    longest: Instant,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            entries: BTreeMap::new(),
            leases: BTreeMap::new(),
            fenced: BTreeSet::new(),
            maybe: Vec::new(),
            writes: 0,
        }
    }

    pub(crate) fn granted(&mut self, grant: &Grant, now: Instant) {
        let life = Life {
            ttl: grant.ttl,
            sure: grant.valid_until,
            longest: now + grant.ttl,
        };
        self.leases.insert(grant.lease, life);
    }

    pub(crate) fn add_unknown(&mut self, request: Request, until: Instant) {
        self.maybe.push((request, until));
    }

    pub(crate) fn unknowns(&self) -> usize {
        self.maybe.len()
    }

    pub(crate) fn end_lease(&mut self, lease: LeaseId) {
        if self.leases.remove(&lease).is_some() {
            self.entries.retain(|_, held| held.lease != Some(lease));
        }
    }

    /// Each world that this one may have become by `now`: by any of the unknown requests, by leases that ended.
    pub(crate) fn next_steps(&self, now: Instant) -> Vec<World> {
        let arrivals = (0..self.maybe.len()).map(|at| {
            let mut world = self.clone();
            let (request, _) = world.maybe.remove(at);
            world.apply(&request, now);
            world
        });
        let ending = self.leases.iter().filter(|(_, life)| life.sure <= now);
        let ends = ending.map(|(lease, _)| {
            let mut world = self.clone();
            world.end_lease(*lease);
            world
        });
        arrivals.chain(ends).collect()
    }

    /// Forgets requests that can no longer arrive; `false` if a lease lives longer than it may.
    pub(crate) fn is_possible(&mut self, now: Instant) -> bool {
        self.maybe.retain(|(_, until)| *until >= now);
        self.leases.values().all(|life| life.longest > now)
    }

    /// The world after this request, if the answer fits it.
    pub(crate) fn explain(&self, request: &Request, answer: &Result<Reply, ErrorKind>, now: Instant) -> Option<World> {
        let mut world = self.clone();
        let expected = world.apply(request, now);
        world.fits(&expected, answer).then_some(world)
    }

    fn apply(&mut self, request: &Request, now: Instant) -> Expected {
        match request {
            Request::Renew(lease) => match self.leases.get_mut(lease) {
                None => Expected::LeaseLost(*lease),
                Some(life) => {
                    life.longest = life.longest.max(now + life.ttl);
                    Expected::Renewed(*lease)
                }
            },
            Request::Revoke(lease) => {
                self.end_lease(*lease);
                Expected::Done
            }
            Request::Create(create) => self.create(create),
            Request::Abandon(create) => self.abandon(create),
            Request::Get(key) => Expected::Found(self.entries.contains_key(key).then(|| key.clone())),
            Request::Children(key) => Expected::Entries(self.children(key).cloned().collect()),
            Request::Update(key, value, expect) => match self.refused(key, expect) {
                Some(refused) => refused,
                None => {
                    let held = self.entries.get_mut(key).expect("checked");
                    (held.value, held.version) = (value.clone(), None);
                    Expected::Entry(key.clone())
                }
            },
            Request::Delete(key, expect) => match self.refused(key, expect) {
                Some(refused) => refused,
                None if self.children(key).next().is_some() => Expected::NotEmpty,
                None => {
                    self.entries.remove(key);
                    Expected::Done
                }
            },
            Request::Standing(entry) => self.standing(entry),
        }
    }

    fn create(&mut self, create: &Create) -> Expected {
        if self.fenced.contains(&create.nonce) {
            return Expected::Abandoned;
        }
        if let Some(lease) = create.mode.lease()
            && !self.leases.contains_key(&lease)
        {
            return Expected::LeaseLost(lease);
        }
        let key = name(create);
        if let Some(held) = self.entries.get(&key) {
            let own = held.nonce == Some(create.nonce);
            return if own {
                Expected::Entry(key)
            } else {
                Expected::Exists(key)
            };
        }
        let above: Vec<_> = key.ancestors().collect();
        let ephemeral = |key: &&Key| self.entries.get(key).is_some_and(|held| held.lease.is_some());
        if let Some(parent) = above.iter().find(ephemeral) {
            return Expected::EphemeralParent(parent.clone());
        }
        for parent in above.iter().rev() {
            if !self.entries.contains_key(parent) {
                self.insert(parent, Bytes::new(), None, None);
            }
        }
        self.insert(&key, create.value.clone(), create.mode.lease(), Some(create.nonce));
        Expected::Entry(key)
    }

    fn abandon(&mut self, create: &Create) -> Expected {
        let key = name(create);
        if self
            .entries
            .get(&key)
            .is_some_and(|held| held.nonce == Some(create.nonce))
        {
            if self.children(&key).next().is_some() {
                return Expected::NotEmpty;
            }
            self.entries.remove(&key);
        }
        self.fenced.insert(create.nonce);
        Expected::Done
    }

    fn standing(&self, entry: &Entry) -> Expected {
        let own = self
            .entries
            .get(&entry.key)
            .filter(|held| held.created == Some(entry.created));
        let Some(own) = own else {
            return Expected::Standing(None, None);
        };
        let parent = entry.key.parent().expect("not the root");
        let earlier = self
            .children(&parent)
            .filter(|key| key.is_sequential() && self.entries[*key].order < own.order);
        let before = earlier.max_by_key(|key| self.entries[*key].order).cloned();
        Expected::Standing(Some(entry.key.clone()), before)
    }

    fn refused(&self, key: &Key, expect: &Expect) -> Option<Expected> {
        match (self.entries.get(key), expect) {
            (None, _) => Some(Expected::NotFound),
            (Some(held), Expect::Version(version)) if held.version != Some(*version) => {
                Some(Expected::Mismatch(key.clone()))
            }
            _ => None,
        }
    }

    fn insert(&mut self, key: &Key, value: Bytes, lease: Option<LeaseId>, nonce: Option<Nonce>) {
        self.writes += 1;
        let held = Held {
            value,
            nonce,
            lease,
            order: self.writes,
            created: None,
            version: None,
        };
        self.entries.insert(key.clone(), held);
    }

    fn children<'a>(&'a self, parent: &'a Key) -> impl Iterator<Item = &'a Key> {
        self.entries.keys().filter(|key| key.is_child_of(parent))
    }

    fn fits(&mut self, expected: &Expected, answer: &Result<Reply, ErrorKind>) -> bool {
        match (expected, answer) {
            (Expected::Renewed(lease), Ok(Reply::Renewed(grant))) => {
                let life = self.leases.get_mut(lease).expect("just renewed");
                life.sure = life.sure.max(grant.valid_until);
                grant.lease == *lease && grant.ttl == life.ttl
            }
            (Expected::Done, Ok(Reply::Done)) => true,
            (Expected::Entry(key), Ok(Reply::Entry(entry))) => self.is(key, entry),
            (Expected::Found(None), Ok(Reply::Found(None))) => true,
            (Expected::Found(Some(key)), Ok(Reply::Found(Some(entry)))) => self.is(key, entry),
            (Expected::Entries(keys), Ok(Reply::Entries(entries))) => {
                keys.len() == entries.len() && keys.iter().zip(entries).all(|(key, entry)| self.is(key, entry))
            }
            (Expected::Standing(own, before), Ok(Reply::Standing(standing))) => {
                let same = match (own, &standing.own) {
                    (None, None) => true,
                    (Some(key), Some(entry)) => self.is(key, entry),
                    _ => false,
                };
                same && *before == standing.predecessor
            }
            (Expected::Exists(key), Err(ErrorKind::AlreadyExists(holder))) => self.is(key, holder),
            (Expected::NotFound, Err(ErrorKind::NotFound)) => true,
            (Expected::Mismatch(key), Err(ErrorKind::VersionMismatch(now))) => match (self.entries[key].version, now) {
                (Some(version), Some(now)) => version == *now,
                _ => true,
            },
            (Expected::NotEmpty, Err(ErrorKind::NotEmpty)) => true,
            (Expected::EphemeralParent(key), Err(ErrorKind::EphemeralParent(parent))) => key == parent,
            (Expected::LeaseLost(lease), Err(ErrorKind::LeaseLost(lost))) => lease == lost,
            (Expected::Abandoned, Err(ErrorKind::Abandoned)) => true,
            _ => false,
        }
    }

    /// Whether the entry is the one held, which from now on has its numbers.
    fn is(&mut self, key: &Key, entry: &Entry) -> bool {
        let held = self.entries.get_mut(key).expect("expected keys are held");
        let created = *held.created.get_or_insert(entry.created);
        let version = *held.version.get_or_insert(entry.version);
        let same = (created, version) == (entry.created, entry.version)
            && (&held.value, held.lease, key) == (&entry.value, entry.lease, &entry.key);
        let order = held.order;
        let in_order = |other: &Held| {
            other
                .created
                .is_none_or(|other_created| other.order.cmp(&order) == other_created.cmp(&created))
        };
        same && self.entries.values().all(in_order)
    }
}

fn name(create: &Create) -> Key {
    match create.mode {
        CreateMode::Sequential(_) => create.key.child(format!("~{}", create.nonce)).expect("short keys"),
        _ => create.key.clone(),
    }
}
