use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use coord_api::{Env, Task};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

/// Waits for the answers to requests that nobody waits for any more, so that their permits live as long as they do.
#[derive(Debug)]
pub(crate) struct Drains {
    env: Env,
    runtime: Handle,
    tasks: Mutex<Vec<Task>>,
}

/// A request on its way. Dropping it cancels nothing, the client library sends it all the same: the rest of the wait
/// is handed to [`Drains`].
pub(crate) struct Flight<T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    permit: Option<OwnedSemaphorePermit>,
    drains: Weak<Drains>,
    sent: bool,
}

// === impl Drains ===

impl Drains {
    pub(crate) fn new(env: &Env, runtime: Handle) -> Arc<Drains> {
        Arc::new(Drains {
            env: env.clone(),
            runtime,
            tasks: Mutex::default(),
        })
    }

    fn drain(&self, future: impl Future<Output = ()> + Send + 'static) {
        // The caller's future may be dropped outside of the runtime.
        let _inside = self.runtime.enter();
        let task = self.env.spawn(future);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }
}

// === impl Flight ===

impl<T: Send + 'static> Flight<T> {
    /// `future` sends its request in its first poll.
    pub(crate) fn new(
        future: impl Future<Output = T> + Send + 'static,
        permit: OwnedSemaphorePermit,
        drains: &Arc<Drains>,
    ) -> Flight<T> {
        Flight {
            future: Some(Box::pin(future)),
            permit: Some(permit),
            drains: Arc::downgrade(drains),
            sent: false,
        }
    }
}

impl<T: Send + 'static> Future for Flight<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.sent = true;
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let output = std::task::ready!(future.as_mut().poll(context));
        self.future = None;
        self.permit = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Flight<T> {
    fn drop(&mut self) {
        let (Some(future), Some(permit)) = (self.future.take(), self.permit.take()) else {
            return;
        };
        if let (true, Some(drains)) = (self.sent, self.drains.upgrade()) {
            drains.drain(async move {
                future.await;
                drop(permit);
            });
        }
    }
}
