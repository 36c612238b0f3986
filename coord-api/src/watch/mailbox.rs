use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Watch;
use super::pending::Pending;
use crate::{Entry, Error, Key, Result, WatchEvent};

/// The driver's end of a [`Watch`]. Never blocks; whatever the reader has not taken is merged.
///
/// Dropping it without [`end`](WatchSender::end) leaves the reader waiting: end it.
pub struct WatchSender(Arc<Shared>);

/// The two ends of a watch. `on_cancel` runs once, when the reader is gone; it must not block.
pub fn mailbox(on_cancel: impl FnOnce() + Send + 'static) -> (WatchSender, Watch) {
    let inner = Inner {
        on_cancel: Some(Box::new(on_cancel)),
        ..Inner::default()
    };
    let shared = Arc::new(Shared(Mutex::new(inner)));
    (
        WatchSender(shared.clone()),
        Watch {
            shared,
            prefix: Key::root(),
        },
    )
}

pub(super) struct Shared(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    pending: Pending,
    reader: Option<Waker>,
    cancelled: bool,
    on_cancel: Option<Box<dyn FnOnce() + Send>>,
}

// === impl WatchSender ===

impl WatchSender {
    /// The whole state: the first one reaches the reader as `State`, each later one as `Resync`.
    pub fn state(&self, entries: Vec<Entry>) {
        self.0.change(|pending| pending.state(entries));
    }

    /// An entry was created or changed.
    pub fn put(&self, entry: Entry) {
        self.0.change(|pending| pending.put(entry));
    }

    /// An entry is gone.
    pub fn delete(&self, key: Key, created: u64) {
        self.0.change(|pending| pending.delete(key, created));
    }

    /// The watch is over, after what is still to be read.
    pub fn end(&self, error: Error) {
        self.0.change(|pending| pending.end(error));
    }

    /// Whether the reader is gone.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }
}

impl fmt::Debug for WatchSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchSender")
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

// === impl Shared ===

impl Shared {
    fn change(&self, apply: impl FnOnce(&mut Pending)) {
        let waker = {
            let mut inner = self.lock();
            if inner.cancelled {
                return;
            }
            apply(&mut inner.pending);
            inner.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Result<WatchEvent>>> {
        let mut inner = self.lock();
        match inner.pending.take() {
            Some(item) => Poll::Ready(item),
            None => {
                inner.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn cancel(&self) {
        let on_cancel = {
            let mut inner = self.lock();
            inner.cancelled = true;
            inner.pending = Pending::default();
            inner.on_cancel.take()
        };
        if let Some(on_cancel) = on_cancel {
            on_cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn dropping_the_reader_cancels_once_and_the_sender_sees_it() {
        let seen = Arc::new(AtomicBool::new(false));
        let (sender, watch) = mailbox({
            let seen = seen.clone();
            move || assert!(!seen.swap(true, Ordering::SeqCst))
        });
        assert!(!sender.is_cancelled());
        drop(watch);
        assert!(seen.load(Ordering::SeqCst) && sender.is_cancelled());
        sender.state(vec![]);
    }

    #[tokio::test]
    async fn the_end_comes_after_what_is_pending() {
        let (sender, mut watch) = mailbox(|| {});
        sender.state(vec![]);
        sender.end(Error::closed(Operation::Watch, None));
        assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::State(vec![]));
        assert!(watch.next().await.unwrap().unwrap_err().is_closed());
        assert!(watch.next().await.is_none());
    }
}
