use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{ElectionEvent, Observation, Observer};

/// The events of an election: what happens to this candidate, and who leads. See
/// [`Election::events`](crate::Election::events).
#[derive(Debug)]
pub struct ElectionEvents {
    pub(super) own: broadcast::Receiver<ElectionEvent>,
    pub(super) observer: Observer,
}

impl ElectionEvents {
    /// The next event; `None` once the coordinator is closed, or the election is gone. A reader that falls far behind
    /// skips the oldest events.
    pub async fn next(&mut self) -> Option<ElectionEvent> {
        loop {
            tokio::select! {
                biased;
                event = self.own.recv() => match event {
                    Ok(event) => return Some(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                observed = self.observer.changed() => match observed? {
                    Observation::Unknown => {}
                    Observation::NoLeader => return Some(ElectionEvent::Leader(None)),
                    Observation::Leader(leader) => return Some(ElectionEvent::Leader(Some(leader))),
                },
            }
        }
    }
}
