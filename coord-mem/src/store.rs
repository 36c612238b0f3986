use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coord_api::{Env, Instant, Target};

use crate::state::{State, WatchId};
use crate::timer::Timer;
use crate::{MemClient, StoreOptions};

/// One store in memory. Its [clients](MemStore::client) share what is in it and nothing else.
///
/// It lives as long as any handle or client of it does; the watches that are left then end with
/// [`Closed`](coord_api::ErrorKind::Closed).
#[derive(Debug, Clone)]
pub struct MemStore(Arc<Shared>);

/// A way to a [`MemStore`] that does not keep it alive.
#[derive(Debug, Clone)]
pub struct WeakMemStore(Weak<Shared>);

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) options: StoreOptions,
    state: Mutex<State>,
    timer: Timer,
    watches: AtomicU64,
    /// Watches whose reader is gone. Apart from the state, because readers go at any moment, also in the midst of a
    /// change of the state that is just being told to them.
    cancelled: Arc<Mutex<Vec<(WatchId, Target)>>>,
}

// === impl MemStore ===

impl MemStore {
    /// An empty store in the world of `env`: on the same clock, with randomness derived from it.
    pub fn new(env: &Env) -> MemStore {
        MemStore::with_options(env, StoreOptions::default())
    }

    /// An empty store that behaves as told.
    pub fn with_options(env: &Env, options: StoreOptions) -> MemStore {
        MemStore(Arc::new(Shared {
            // Its own, so that pausing the environment it was made from does not stop the store.
            env: env.child(),
            options,
            state: Mutex::default(),
            timer: Timer::default(),
            watches: AtomicU64::default(),
            cancelled: Arc::default(),
        }))
    }

    /// One more client: its own connection, leases, clock and faults.
    pub fn client(&self) -> Arc<MemClient> {
        Arc::new(MemClient::new(self.0.clone()))
    }

    /// A way to the store that does not keep it alive.
    pub fn downgrade(&self) -> WeakMemStore {
        WeakMemStore(Arc::downgrade(&self.0))
    }

    /// How many watches the store holds, of all clients: what a leak test counts.
    pub fn watch_count(&self) -> usize {
        self.0.access(|state, _| state.watch_count())
    }
}

// === impl WeakMemStore ===

impl WeakMemStore {
    /// The store, if a handle or client of it is left.
    pub fn upgrade(&self) -> Option<MemStore> {
        self.0.upgrade().map(MemStore)
    }
}

// === impl Shared ===

impl Shared {
    /// The state as it is now: whatever was due has happened.
    pub(crate) fn access<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = self.state();
        self.forget_cancelled(&mut state);
        let now = self.env.now();
        state.advance(now);
        let output = change(&mut state, now);
        if let Some(due) = state.next_due()
            && state.timer_set_for.is_none_or(|set_for| due < set_for)
        {
            state.timer_set_for = Some(due);
            drop(state);
            self.timer.wake(self);
        }
        output
    }

    /// What the timer does when it looks: lets happen what is due, and tells when to look next.
    pub(crate) fn tick(&self) -> Option<Instant> {
        let mut state = self.state();
        self.forget_cancelled(&mut state);
        state.advance(self.env.now());
        state.timer_set_for = state.next_due();
        state.timer_set_for
    }

    /// A number for a new watch, and what is to be called when its reader is gone.
    pub(crate) fn new_watch(&self, target: &Target) -> (WatchId, impl FnOnce() + Send + 'static) {
        let id = WatchId(self.watches.fetch_add(1, Ordering::Relaxed));
        let (target, cancelled) = (target.clone(), self.cancelled.clone());
        (id, move || lock(&cancelled).push((id, target)))
    }

    fn forget_cancelled(&self, state: &mut State) {
        // Taken out first: what is dropped here may drop further readers, which put themselves on the list.
        let cancelled = std::mem::take(&mut *lock(&self.cancelled));
        for (id, target) in cancelled {
            state.unwatch(id, &target);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.state().end_all_watches();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A panic elsewhere (in a waker, say) is no reason to fail everybody: the state is changed in whole steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
