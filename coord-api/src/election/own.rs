use std::sync::Arc;

use tokio::sync::watch;
use tracing::debug;

use super::Unelected;
use super::identity::Identity;
use super::pace::Pace;
use super::shared::Shared;
use crate::{Entry, LossReason, Target, Task, WatchEvent};

/// Watches the own entry: when somebody deletes it or writes over it, it tells.
pub(super) struct OwnWatch {
    gone: watch::Receiver<Option<Unelected>>,
    _task: Task,
}

impl OwnWatch {
    pub(super) fn start(shared: &Arc<Shared>, entry: &Entry, identity: &Identity) -> OwnWatch {
        let (sender, gone) = watch::channel(None);
        let (shared, entry, identity) = (shared.clone(), entry.clone(), identity.clone());
        let env = shared.env().clone();
        let task = env.spawn(async move {
            let reason = follow(&shared, &entry, &identity).await;
            sender.send_replace(Some(reason));
        });
        OwnWatch { gone, _task: task }
    }

    /// Resolves when the entry is no longer the own one, as soon as that is seen.
    pub(super) async fn gone(&mut self) -> Unelected {
        loop {
            if let Some(reason) = *self.gone.borrow_and_update() {
                return reason;
            }
            if self.gone.changed().await.is_err() {
                // The task has ended without a word: the runtime is shutting down.
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn follow(shared: &Shared, entry: &Entry, identity: &Identity) -> Unelected {
    // Closing the coordinator revokes the lease: no need to wait until the session finds out.
    const CLOSED: Unelected = Unelected::Session(LossReason::Closed);
    let mut pace = Pace::new();
    loop {
        match shared.coordinator.watch(&Target::Key(entry.key.clone())).await {
            Ok(mut watch) => {
                pace = Pace::new();
                while let Some(event) = watch.next().await {
                    match event {
                        Ok(event) => {
                            if let Some(reason) = judge(&event, entry, identity) {
                                return reason;
                            }
                        }
                        Err(error) if error.is_closed() => return CLOSED,
                        Err(error) => debug!(key = %entry.key, "watch of the own entry ended: {error}"),
                    }
                }
            }
            Err(error) if error.is_closed() => return CLOSED,
            Err(error) => debug!(key = %entry.key, "no watch of the own entry: {error}"),
        }
        pace.wait(shared.env()).await;
    }
}

/// What an event means for the own entry; what is older than it means nothing.
fn judge(event: &WatchEvent, own: &Entry, identity: &Identity) -> Option<Unelected> {
    match event {
        WatchEvent::State(entries) | WatchEvent::Resync(entries) => match entries.first() {
            Some(entry) => judge_entry(entry, own, identity),
            None => Some(Unelected::Deleted),
        },
        WatchEvent::Put(entry) => judge_entry(entry, own, identity),
        WatchEvent::Delete { created, .. } => (*created >= own.created).then_some(Unelected::Deleted),
    }
}

fn judge_entry(entry: &Entry, own: &Entry, identity: &Identity) -> Option<Unelected> {
    match entry.created.cmp(&own.created) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Greater => Some(Unelected::Deleted),
        std::cmp::Ordering::Equal if identity.owns(entry) => None,
        std::cmp::Ordering::Equal => Some(Unelected::Hijacked),
    }
}
