use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the shared connection may lag behind what this coordinator wrote, or showed, through a lease's session.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    elsewhere: AtomicU64,
    caught_up: AtomicU64,
}

/// Something happened on another session that the shared connection has to catch up with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind(u64);

impl Fresh {
    /// A lease's session wrote something, or showed something to the caller.
    pub(crate) fn moved_elsewhere(&self) {
        self.elsewhere.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether a read on the shared connection needs a barrier before it.
    pub(crate) fn behind(&self) -> Option<Behind> {
        let elsewhere = self.elsewhere.load(Ordering::SeqCst);
        (elsewhere > self.caught_up.load(Ordering::SeqCst)).then_some(Behind(elsewhere))
    }

    /// A barrier that was sent after `behind` was taken is answered.
    pub(crate) fn caught_up(&self, behind: Behind) {
        self.caught_up.fetch_max(behind.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_during_a_barrier_needs_another_one() {
        let fresh = Fresh::default();
        assert!(fresh.behind().is_none());
        fresh.moved_elsewhere();
        let behind = fresh.behind().unwrap();
        fresh.moved_elsewhere();
        fresh.caught_up(behind);
        let behind = fresh.behind().unwrap();
        fresh.caught_up(behind);
        assert!(fresh.behind().is_none());
    }
}
