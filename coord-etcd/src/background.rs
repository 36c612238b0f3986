use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use coord_api::{Env, Task};

/// So many writes go on at most. One more ends where it is, as if this process had ended: of unknown outcome.
const MOST: usize = 4096;

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

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Outside of a runtime nothing can go on; the store's own expiry cleans up.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let mut tasks = self.lock();
        // Each time there are twice as many as the last time somebody looked, so that looking costs nothing on average.
        if tasks.len() == tasks.capacity() || tasks.len() >= MOST {
            tasks.retain(|task| !task.is_finished());
        }
        if tasks.len() < MOST {
            tasks.push(self.env.spawn(task));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_write_goes_on_but_not_without_bound() {
        let background = Background::new(Env::system());
        let polled = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        for _ in 0..3 * MOST {
            let polled = polled.clone();
            let write = background.finish(async move {
                polled.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                std::future::pending::<()>().await;
            });
            let mut write = Box::pin(write);
            assert!(futures::poll!(&mut write).is_pending());
        }
        assert_eq!(polled.load(std::sync::atomic::Ordering::SeqCst), 3 * MOST);
        assert_eq!(background.lock().len(), MOST);
        background.clear();
        assert_eq!(background.lock().len(), 0);
    }
}
