use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::Envelope;

/// What is to happen.
pub(super) enum Due {
    Wake { node: usize, life: u32 },
    Resume { node: usize, life: u32 },
    Deliver(Envelope),
}

/// Things to happen in order of time, and of insertion where the times are equal.
#[derive(Default)]
pub(super) struct Queue {
    /// (nanoseconds, insertion, slot): small, so that sifting does not move whole messages.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    slots: Vec<Option<Due>>,
    free: Vec<u32>,
    inserted: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Duration, due: Due) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(due);
        self.inserted += 1;
        self.heap.push(Reverse((at.as_nanos() as u64, self.inserted, slot)));
    }

    /// When the next thing is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        Some(Duration::from_nanos(*at))
    }

    /// The next thing due at or before `end`.
    pub(super) fn pop_before(&mut self, end: Duration) -> Option<(Duration, Due)> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > end.as_nanos() as u64 {
            return None;
        }
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slots[slot as usize]
            .take()
            .map(|due| (Duration::from_nanos(at), due))
    }
}
