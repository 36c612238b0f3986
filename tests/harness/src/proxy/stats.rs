//! Counters of a proxy.

use super::Direction;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of one direction, since the proxy's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read from the sender.
    pub received: u64,
    /// Written to the receiver. Less than `received` while bytes are delayed or held, and for good once some are dropped.
    pub forwarded: u64,
}

/// A snapshot of a proxy's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections open now.
    pub live: u64,
    /// Requests.
    pub to_server: Traffic,
    /// Answers.
    pub to_client: Traffic,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) live: AtomicU64,
    to_server: TrafficCounters,
    to_client: TrafficCounters,
}

#[derive(Debug, Default)]
pub(crate) struct TrafficCounters {
    pub(crate) received: AtomicU64,
    pub(crate) forwarded: AtomicU64,
}

impl Counters {
    pub(crate) fn of(&self, direction: Direction) -> &TrafficCounters {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let traffic = |counters: &TrafficCounters| {
            // In this order, so that a snapshot never shows more forwarded than received.
            let forwarded = counters.forwarded.load(Relaxed);
            Traffic {
                received: counters.received.load(Relaxed),
                forwarded,
            }
        };
        Stats {
            accepted: self.accepted.load(Relaxed),
            live: self.live.load(Relaxed),
            to_server: traffic(&self.to_server),
            to_client: traffic(&self.to_client),
        }
    }
}
