use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use coord_api::{Env, Task};

/// Where writes go on whose callers went away: they end by their own deadline, or with the coordinator.
#[derive(Debug)]
pub(crate) struct Background {
    env: Env,
    tasks: Mutex<Vec<Task>>,
}

/// A write that is finished even if nobody waits for it any more.
struct Finished<T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    started: bool,
    background: Arc<Background>,
}

impl Background {
    pub(crate) fn new(env: Env) -> Arc<Background> {
        Arc::new(Background {
            env,
            tasks: Mutex::default(),
        })
    }

    /// `write`, which goes on here when its future is dropped half-way.
    pub(crate) fn finish<T: Send + 'static>(
        self: &Arc<Background>,
        write: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        Finished {
            future: Some(Box::pin(write)),
            started: false,
            background: self.clone(),
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Outside of a runtime nothing can go on; the store's own expiry cleans up.
        if tokio::runtime::Handle::try_current().is_ok() {
            let task = self.env.spawn(task);
            let mut tasks = self.lock();
            tasks.retain(|task| !task.is_finished());
            tasks.push(task);
        }
    }

    /// Ends everything.
    pub(crate) fn clear(&self) {
        let tasks = std::mem::take(&mut *self.lock());
        drop(tasks);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Future for Finished<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.started = true;
        match &mut self.future {
            Some(future) => {
                let polled = future.as_mut().poll(context);
                if polled.is_ready() {
                    self.future = None;
                }
                polled
            }
            None => Poll::Pending,
        }
    }
}

impl<T: Send + 'static> Drop for Finished<T> {
    fn drop(&mut self) {
        if let (true, Some(future)) = (self.started, self.future.take()) {
            self.background.spawn(async move {
                future.await;
            });
        }
    }
}
