//! The latest that a watch of the store has told.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Entry, Target, Task, WatchEvent};
use tokio::sync::watch;
use tracing::debug;

/// The wait before a watch that failed is opened anew.
const AGAIN: Duration = Duration::from_millis(500);

/// A watch that opens itself anew; a silent store leaves the last known.
pub(crate) struct Follow {
    latest: watch::Receiver<Option<Vec<Entry>>>,
    _task: Task,
}

// === impl Follow ===

impl Follow {
    pub(crate) fn start(coordinator: &Arc<dyn Coordinator>, target: Target) -> Follow {
        let (sender, latest) = watch::channel(None);
        let env = coordinator.env().clone();
        let task = env.spawn(follow(coordinator.clone(), target, sender));
        Follow { latest, _task: task }
    }

    /// What was told last; `None` before anything was.
    pub(crate) fn latest(&mut self) -> Option<Vec<Entry>> {
        self.latest.borrow_and_update().clone()
    }

    /// Whether there is something that neither this nor [`latest`](Follow::latest) has shown.
    pub(crate) fn take_changed(&mut self) -> bool {
        let changed = self.latest.has_changed().unwrap_or(false);
        self.latest.mark_unchanged();
        changed
    }

    /// Resolves when there is something that [`latest`](Follow::latest) has not shown.
    pub(crate) async fn changed(&mut self) {
        if self.latest.changed().await.is_err() {
            // The coordinator is closed: nothing is told any more.
            std::future::pending::<()>().await;
        }
    }
}

async fn follow(coordinator: Arc<dyn Coordinator>, target: Target, latest: watch::Sender<Option<Vec<Entry>>>) {
    let env = coordinator.env().clone();
    loop {
        match coordinator.watch(&target).await {
            Ok(mut watch) => {
                while let Some(event) = watch.next().await {
                    match event {
                        Ok(event) => latest.send_modify(|entries| apply(entries.get_or_insert_default(), event)),
                        Err(error) if error.is_closed() => return,
                        Err(error) => {
                            debug!(key = %target.key(), "watch: {error}");
                            break;
                        }
                    }
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => debug!(key = %target.key(), "watch: {error}"),
        }
        env.sleep(AGAIN - env.random_duration(AGAIN / 2)).await;
    }
}

fn apply(entries: &mut Vec<Entry>, event: WatchEvent) {
    match event {
        WatchEvent::State(now) | WatchEvent::Resync(now) => *entries = now,
        WatchEvent::Put(entry) => {
            entries.retain(|known| known.key != entry.key);
            entries.push(entry);
        }
        WatchEvent::Delete { key, .. } => entries.retain(|known| known.key != key),
    }
}
