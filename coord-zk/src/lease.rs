use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coord_api::{Grant, Instant, Key, LeaseId};

use crate::conn::Conn;
use crate::nonces::Nonces;
use crate::proof::Proof;

/// Closing a session whose paths total about 2 MB kills the ensemble for good.
const MAX_PATH_BYTES: usize = 1_000_000;

/// One session of ZooKeeper, which ends when nobody renews it although the client library pings by itself.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) id: LeaseId,
    pub(crate) ttl: Duration,
    pub(crate) conn: Arc<Conn>,
    pub(crate) nonces: Arc<Nonces>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    proof: Proof,
    answered: Instant,
    ended: bool,
    paths: HashMap<Key, Path>,
    path_bytes: usize,
}

/// What counts against the cap.
#[derive(Debug)]
struct Path {
    bytes: usize,
    /// It is at the server, or may be.
    there: bool,
    /// How many creates of it are under way.
    making: usize,
}

/// A path that a create is about to add: counted while the create is under way, and afterwards unless that says that
/// nothing is there. A create that was dropped may have happened.
#[derive(Debug)]
pub(crate) struct Place {
    lease: Arc<Lease>,
    key: Key,
    may_be_there: bool,
}

/// The lease has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lost;

impl Lease {
    /// A lease whose session was asked for at `sent` and is there at `now`.
    pub(crate) fn new(conn: Conn, sent: Instant, now: Instant) -> Lease {
        let ttl = conn.timeout();
        Lease {
            id: LeaseId(conn.session().id().0 as u64),
            ttl,
            conn: Arc::new(conn),
            nonces: Arc::default(),
            state: Mutex::new(State {
                proof: Proof::new(ttl, sent),
                answered: now,
                ended: false,
                paths: HashMap::new(),
                path_bytes: 0,
            }),
        }
    }

    pub(crate) fn grant(&self) -> Grant {
        Grant {
            lease: self.id,
            ttl: self.ttl,
            valid_until: self.lock().proof.valid_until(),
        }
    }

    /// A renewal that was sent at `sent` is answered at `now`.
    pub(crate) fn renewed(&self, sent: Instant, now: Instant) -> Result<Grant, Lost> {
        let mut state = self.lock();
        if state.ended {
            return Err(Lost);
        }
        state.answered = state.answered.max(now);
        state.proof.answered(sent, now);
        drop(state);
        Ok(self.grant())
    }

    /// When the lease ends unless somebody renews it.
    pub(crate) fn ends(&self) -> Instant {
        self.lock().answered + self.ttl
    }

    /// Ends it if nobody renewed it in time; whether it has ended.
    pub(crate) fn end_if_due(&self, now: Instant) -> bool {
        let mut state = self.lock();
        state.ended |= now >= state.answered + self.ttl;
        state.ended
    }

    /// From now on no renewal succeeds.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Counts a path that is about to be added, unless the session would carry too much. One that is counted already is
    /// not counted twice.
    pub(crate) fn carry(self: &Arc<Self>, key: &Key, bytes: usize) -> Result<Place, Full> {
        let mut state = self.lock();
        if !state.paths.contains_key(key) && state.path_bytes + bytes > MAX_PATH_BYTES {
            return Err(Full);
        }
        state.path(key, bytes).making += 1;
        Ok(Place {
            lease: self.clone(),
            key: key.clone(),
            may_be_there: true,
        })
    }

    /// The entry is there.
    pub(crate) fn carries_now(&self, key: &Key, bytes: usize) {
        self.lock().path(key, bytes).there = true;
    }

    /// The entry is gone.
    pub(crate) fn release(&self, key: &Key) {
        let mut state = self.lock();
        if let Some(path) = state.paths.get_mut(key) {
            path.there = false;
        }
        state.tidy(key);
    }

    pub(crate) fn carries(&self, key: &Key) -> bool {
        self.lock().paths.contains_key(key)
    }

    /// Counts anew what the server says is there: others may have deleted some of it. What is being made is not there
    /// yet, and counts all the same.
    pub(crate) fn recount(&self, there: HashMap<Key, usize>) {
        let mut state = self.lock();
        state.paths.retain(|_, path| {
            path.there = false;
            path.making > 0
        });
        state.path_bytes = state.paths.values().map(|path| path.bytes).sum();
        for (key, bytes) in there {
            state.path(&key, bytes).there = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The path, counted from now on.
    fn path(&mut self, key: &Key, bytes: usize) -> &mut Path {
        let path_bytes = &mut self.path_bytes;
        self.paths.entry(key.clone()).or_insert_with(|| {
            *path_bytes += bytes;
            Path {
                bytes,
                there: false,
                making: 0,
            }
        })
    }

    /// Counts the path no more if nothing speaks for it.
    fn tidy(&mut self, key: &Key) {
        if let Some(path) = self.paths.get(key)
            && !path.there
            && path.making == 0
        {
            self.path_bytes -= path.bytes;
            self.paths.remove(key);
        }
    }
}

// === impl Place ===

impl Place {
    /// The create made nothing here.
    pub(crate) fn nothing_there(mut self) {
        self.may_be_there = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.lease.lock();
        if let Some(path) = state.paths.get_mut(&self.key) {
            path.making = path.making.saturating_sub(1);
            path.there |= self.may_be_there;
        }
        state.tidy(&self.key);
    }
}

/// The session carries as many path bytes as is safe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;
