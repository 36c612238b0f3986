//! For how long nothing was heard of a cluster that is on record.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Instant, Key, Target, Version, Watch, WatchEvent};
use futures::FutureExt;

/// Watches the leader's entry without a gap: whatever happens to it ends the vigil, and so does a store that does not
/// answer, because then nobody knows.
pub(crate) struct Vigil {
    record: Version,
    watch: Watch,
    since: Option<Instant>,
    over: bool,
}

// === impl Vigil ===

impl Vigil {
    pub(crate) async fn begin(coordinator: &Arc<dyn Coordinator>, leader: &Key, record: Version) -> Option<Vigil> {
        let watch = coordinator.watch(&Target::Key(leader.clone())).await.ok()?;
        Some(Vigil {
            record,
            watch,
            since: None,
            over: false,
        })
    }

    /// Whether it still lasts, for this record.
    pub(crate) fn lasts(&mut self, record: Version, now: Instant) -> bool {
        while !self.over {
            match self.watch.next().now_or_never() {
                None => break,
                Some(event) => self.hear(event.and_then(Result::ok), now),
            }
        }
        !self.over && self.record == record
    }

    /// For how long it has lasted.
    pub(crate) fn so_far(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now - since)
    }

    /// Resolves when it is over.
    pub(crate) async fn ended(&mut self, now: impl Fn() -> Instant) {
        while !self.over {
            let event = self.watch.next().await;
            self.hear(event.and_then(Result::ok), now());
        }
    }

    fn hear(&mut self, event: Option<WatchEvent>, now: Instant) {
        match event {
            // Only the first word may be that there is nothing: later, something was there in between.
            Some(WatchEvent::State(entries)) if entries.is_empty() && self.since.is_none() => self.since = Some(now),
            _ => self.over = true,
        }
    }
}
