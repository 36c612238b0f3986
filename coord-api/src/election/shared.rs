use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{ElectionConfig, ElectionEvent};
use crate::{Coordinator, Env, Error, Operation, Session, Task};

/// How many events a reader may be behind before it skips some.
const EVENTS: usize = 256;

/// What an election, its campaigns, leaderships and clean-ups share.
pub(super) struct Shared {
    pub(super) session: Session,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) config: ElectionConfig,
    pub(super) events: broadcast::Sender<ElectionEvent>,
    pub(super) closed: CancellationToken,
    /// Clean-ups under way; each takes itself out when it is done, and is done when its lease has ended at the latest.
    clean_ups: Mutex<BTreeMap<u64, Task>>,
    left: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(session: &Session, config: ElectionConfig) -> Shared {
        Shared {
            session: session.clone(),
            coordinator: session.coordinator().clone(),
            config,
            events: broadcast::Sender::new(EVENTS),
            closed: CancellationToken::new(),
            clean_ups: Mutex::default(),
            left: watch::Sender::new(0),
        }
    }

    pub(super) fn env(&self) -> &Env {
        self.coordinator.env()
    }

    pub(super) fn tell(&self, event: ElectionEvent) {
        // Nobody listens: nobody is told.
        let _ = self.events.send(event);
    }

    pub(super) fn closed_error(&self) -> Error {
        Error::closed(Operation::Create, Some(&self.config.key))
    }

    /// Runs a clean-up that owns itself: it must end by itself.
    pub(super) fn own(self: &Arc<Self>, clean_up: impl Future<Output = ()> + Send + 'static) {
        // Whatever thread drops the last of it. Should this runtime be gone, so is the session: the lease ends by itself.
        let _entered = self.session.runtime().enter();
        let mut running = self.lock();
        let id = running.last_key_value().map_or(0, |(id, _)| id + 1);
        let shared = self.clone();
        let busy = self.busy();
        let task = self.env().spawn(async move {
            clean_up.await;
            let done = shared.lock().remove(&id);
            drop(busy);
            drop(done);
        });
        running.insert(id, task);
    }

    /// Something is under way that a close waits for, until the guard is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.left.send_modify(|left| *left += 1);
        Busy(self.clone())
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        let mut left = self.left.subscribe();
        // The sender is ours: this cannot fail.
        let _ = left.wait_for(|left| *left == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Task>> {
        self.clean_ups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as under way as long as it lives.
pub(super) struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.left.send_modify(|left| *left -= 1);
    }
}
