use std::sync::{Arc, Mutex, PoisonError, Weak};

use coord_api::{Env, Task};
use tokio::sync::Notify;

use crate::store::Shared;

/// The task that lets leases end and late requests arrive on time when nobody calls. It ends with the store.
#[derive(Default)]
pub(crate) struct Timer {
    task: Mutex<Option<Task>>,
    earlier: Arc<Notify>,
}

impl Timer {
    /// Something is due earlier than the timer knows. Starts it if it does not run: none ran yet, or its runtime is
    /// gone. Without any runtime there is none; then what is due happens at the next call.
    pub(crate) fn wake(&self, store: &Arc<Shared>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(Task::is_finished) && tokio::runtime::Handle::try_current().is_ok() {
            let run = run(Arc::downgrade(store), store.env.clone(), self.earlier.clone());
            *task = Some(store.env.spawn(run));
        }
        self.earlier.notify_one();
    }
}

async fn run(store: Weak<Shared>, env: Env, earlier: Arc<Notify>) {
    // The store is not held while asleep: it goes when its last client does, and this task with it.
    while let Some(next) = store.upgrade().map(|store| store.tick()) {
        match next {
            None => earlier.notified().await,
            Some(due) => {
                tokio::select! {
                    biased;
                    () = earlier.notified() => {}
                    () = env.sleep_until(due) => {}
                }
            }
        }
    }
}
