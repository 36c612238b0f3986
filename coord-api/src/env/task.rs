use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// A running task with an owner: dropping the handle ends it.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub struct Task<T = ()>(AbortOnDropHandle<T>);

impl<T> Task<T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Task<T> {
        Task(AbortOnDropHandle::new(handle))
    }

    /// Waits for its end; `None` if it was aborted or panicked.
    pub async fn join(self) -> Option<T> {
        self.0.await.ok()
    }

    /// Asks it to end at its next await.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}
