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
    paths: HashMap<Key, usize>,
    path_bytes: usize,
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

    /// Counts an entry, unless the session would carry too much. An entry that is counted already is not counted twice.
    pub(crate) fn carry(&self, key: &Key, path_bytes: usize) -> Result<(), Full> {
        let mut state = self.lock();
        if state.paths.contains_key(key) {
            return Ok(());
        }
        if state.path_bytes + path_bytes > MAX_PATH_BYTES {
            return Err(Full);
        }
        state.path_bytes += path_bytes;
        state.paths.insert(key.clone(), path_bytes);
        Ok(())
    }

    /// The entry is gone, or never was.
    pub(crate) fn release(&self, key: &Key) {
        let mut state = self.lock();
        if let Some(bytes) = state.paths.remove(key) {
            state.path_bytes -= bytes;
        }
    }

    pub(crate) fn carries(&self, key: &Key) -> bool {
        self.lock().paths.contains_key(key)
    }

    /// Counts anew what the server says is there: others may have deleted some of it.
    pub(crate) fn recount(&self, there: HashMap<Key, usize>) {
        let mut state = self.lock();
        state.path_bytes = there.values().sum();
        state.paths = there;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session carries as many path bytes as is safe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;
