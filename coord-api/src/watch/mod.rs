mod event;
mod mailbox;
mod pending;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};

use crate::{Key, Result};
pub use event::{Target, WatchEvent};
pub use mailbox::{WatchSender, mailbox};

/// The state of a [`Target`] and what happens to it: a stream of [`WatchEvent`]s.
///
/// The first event is the state. A slow reader holds nobody up: what it has not read yet is merged to the latest per
/// key. The stream ends with an error when the coordinator is closed or the store refuses the watch for good.
/// Dropping it cancels it, at the store too.
#[must_use = "dropping a watch cancels it"]
pub struct Watch {
    shared: Arc<mailbox::Shared>,
    /// Keys are shown as seen from here.
    prefix: Key,
}

impl Watch {
    /// The next event; `None` after the final error.
    pub async fn next(&mut self) -> Option<Result<WatchEvent>> {
        StreamExt::next(self).await
    }

    /// The same watch with its keys as seen from `prefix`.
    pub(crate) fn relative_to(mut self, prefix: &Key) -> Watch {
        // Prefixes nest from the inside out: the store's name of the outer one is the inner one's and then this one's.
        if let Ok(joined) = prefix.under(&self.prefix) {
            self.prefix = joined;
        }
        self
    }

    fn seen_from_here(&self, key: &Key) -> Key {
        key.relative_to(&self.prefix).unwrap_or_else(|| key.clone())
    }
}

impl Stream for Watch {
    type Item = Result<WatchEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.poll_take(context).map(|item| {
            item.map(|result| match result {
                Ok(event) if self.prefix.is_root() => Ok(event),
                Ok(event) => Ok(event.map_keys(|key| self.seen_from_here(key))),
                Err(error) => Err(error.map_keys(|key| self.seen_from_here(key))),
            })
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.cancel();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
