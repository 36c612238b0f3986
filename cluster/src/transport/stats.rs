use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::FrameError;
use crate::DropReason;

/// What the transport counted since the node started. The same numbers go to the `metrics` crate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames written.
    pub sent: u64,
    /// Frames read and understood.
    pub received: u64,
    /// Frames that did not decode or were of another version.
    pub malformed: u64,
    /// Frames that were too long.
    pub oversized: u64,
    /// Frames that came a second time.
    pub replayed: u64,
    /// Frames without the right tag.
    pub unauthentic: u64,
    /// Messages of another cluster, or for another node.
    pub foreign: u64,
    /// Messages that no longer mattered: from a dead sender, or late answers.
    pub stray: u64,
    /// Messages dropped because a queue was full or a peer did not answer.
    pub undelivered: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Counters(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    sent: AtomicU64,
    received: AtomicU64,
    malformed: AtomicU64,
    oversized: AtomicU64,
    replayed: AtomicU64,
    unauthentic: AtomicU64,
    foreign: AtomicU64,
    stray: AtomicU64,
    undelivered: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> Stats {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let cells = &self.0;
        Stats {
            sent: get(&cells.sent),
            received: get(&cells.received),
            malformed: get(&cells.malformed),
            oversized: get(&cells.oversized),
            replayed: get(&cells.replayed),
            unauthentic: get(&cells.unauthentic),
            foreign: get(&cells.foreign),
            stray: get(&cells.stray),
            undelivered: get(&cells.undelivered),
        }
    }

    pub(crate) fn sent(&self) {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("coord_cluster_frames_sent_total").increment(1);
    }

    pub(crate) fn received(&self) {
        self.0.received.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("coord_cluster_frames_received_total").increment(1);
    }

    pub(crate) fn undelivered(&self) {
        dropped(&self.0.undelivered, "undelivered");
    }

    pub(crate) fn refused(&self, error: FrameError) {
        match error {
            FrameError::Malformed | FrameError::Version => dropped(&self.0.malformed, "malformed"),
            FrameError::Oversized => dropped(&self.0.oversized, "oversized"),
            FrameError::Replayed => dropped(&self.0.replayed, "replayed"),
            FrameError::Unauthentic => dropped(&self.0.unauthentic, "unauthentic"),
            FrameError::Misdirected => dropped(&self.0.foreign, "foreign"),
        }
    }

    pub(crate) fn dropped(&self, reason: DropReason) {
        match reason {
            DropReason::ForeignCluster | DropReason::Misdirected => dropped(&self.0.foreign, "foreign"),
            DropReason::Stray | DropReason::DeadSender => dropped(&self.0.stray, "stray"),
        }
    }
}

fn dropped(cell: &AtomicU64, reason: &'static str) {
    cell.fetch_add(1, Ordering::Relaxed);
    metrics::counter!("coord_cluster_dropped_total", "reason" => reason).increment(1);
}
