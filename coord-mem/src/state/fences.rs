use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use coord_api::{Instant, Nonce};

/// Long after the last copy of a request has arrived or got lost.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The nonces of abandoned creates, remembered for as long as a copy of their requests can still arrive.
#[derive(Debug, Default)]
pub(super) struct Fences {
    until: BTreeMap<Nonce, Instant>,
    oldest_first: VecDeque<Nonce>,
}

impl Fences {
    /// Fences a nonce off; `last_arrival` is that of the slowest request under way.
    pub(super) fn add(&mut self, nonce: Nonce, now: Instant, last_arrival: Option<Instant>) {
        self.forget_old(now);
        let until = last_arrival.map_or(now, |last| last.max(now)) + KEPT_FOR;
        if self.until.insert(nonce, until).is_none() {
            self.oldest_first.push_back(nonce);
        }
    }

    pub(super) fn holds(&self, nonce: Nonce) -> bool {
        self.until.contains_key(&nonce)
    }

    /// Oldest first; one that has to be kept longer keeps those behind it a little longer too.
    fn forget_old(&mut self, now: Instant) {
        while let Some(oldest) = self.oldest_first.front()
            && self.until.get(oldest).is_none_or(|until| *until <= now)
        {
            self.until.remove(oldest);
            self.oldest_first.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_forgotten_an_hour_after_the_last_request_under_way() {
        let at = |secs| Instant::from_start(Duration::from_secs(secs));
        let mut fences = Fences::default();
        fences.add(Nonce(1), at(0), Some(at(100)));
        fences.add(Nonce(2), at(3600), None);
        assert!(fences.holds(Nonce(1)));
        fences.add(Nonce(3), at(3700), None);
        assert!(!fences.holds(Nonce(1)) && fences.holds(Nonce(2)) && fences.holds(Nonce(3)));
    }
}
