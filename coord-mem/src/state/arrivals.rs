use std::collections::BTreeMap;
use std::fmt;

use coord_api::Instant;

use super::State;

/// What is under way to or from the store and comes later: requests and answers, in the order of their arrival.
#[derive(Default)]
pub(super) struct Arrivals {
    queue: BTreeMap<(Instant, u64), Arrival>,
    sent: u64,
}

/// What happens on arrival.
pub(crate) type Arrival = Box<dyn FnOnce(&mut State, Instant) + Send>;

impl Arrivals {
    pub(super) fn push(&mut self, at: Instant, arrival: Arrival) {
        self.sent += 1;
        self.queue.insert((at, self.sent), arrival);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn last_at(&self) -> Option<Instant> {
        self.queue.last_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn pop(&mut self) -> Option<Arrival> {
        self.queue.pop_first().map(|(_, arrival)| arrival)
    }
}

impl fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.queue.keys()).finish()
    }
}
