use std::collections::VecDeque;
use std::time::Duration;

use coord_api::Instant;

/// How many send times are kept per ttl; more renewals than that are not told apart.
const KEPT_PER_TTL: u32 = 64;

/// Until when a session surely lives.
///
/// A follower passes the touch of a session on to the leader with its next ping, and the touch is lost when it dies
/// before. So an answered renewal proves only those that were sent at least a ping earlier: half a tick, which is at
/// most a quarter of the ttl.
#[derive(Debug)]
pub(crate) struct Proof {
    ttl: Duration,
    /// When the renewals (and the connect) that were answered had been sent, oldest first.
    sent: VecDeque<Instant>,
    valid_until: Instant,
}

impl Proof {
    /// For a session that was asked for at `sent` and exists. The leader itself creates it, and counts from then on:
    /// no second proof is needed.
    pub(crate) fn new(ttl: Duration, sent: Instant) -> Proof {
        Proof {
            ttl,
            sent: VecDeque::from([sent]),
            valid_until: sent + ttl,
        }
    }

    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// A renewal that was sent at `sent` has been answered.
    pub(crate) fn answered(&mut self, sent: Instant) {
        let ping = self.ttl / 4;
        let proven = self.sent.iter().rev().find(|earlier| **earlier + ping <= sent).copied();
        if let Some(proven) = proven {
            self.valid_until = self.valid_until.max(proven + self.ttl);
            while self.sent.front().is_some_and(|oldest| *oldest < proven) {
                self.sent.pop_front();
            }
        }
        let newest = self.sent.back();
        if newest.is_none_or(|newest| *newest + self.ttl / KEPT_PER_TTL <= sent) {
            self.sent.push_back(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(8);

    fn at(seconds: u64) -> Instant {
        Instant::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn validity_counts_from_the_renewal_before() {
        let mut proof = Proof::new(TTL, at(100));
        assert_eq!(proof.valid_until(), at(108));
        proof.answered(at(102));
        assert_eq!(proof.valid_until(), at(108));
        proof.answered(at(104));
        assert_eq!(proof.valid_until(), at(110));
        // Only a second later: the touch before may still be with the follower.
        proof.answered(at(105));
        assert_eq!(proof.valid_until(), at(110));
        proof.answered(at(107));
        assert_eq!(proof.valid_until(), at(113));
    }

    #[test]
    fn an_older_renewal_that_is_answered_late_takes_nothing_back() {
        let mut proof = Proof::new(TTL, at(100));
        proof.answered(at(103));
        proof.answered(at(106));
        assert_eq!(proof.valid_until(), at(111));
        proof.answered(at(101));
        assert_eq!(proof.valid_until(), at(111));
    }

    #[test]
    fn incessant_renewals_cost_no_memory() {
        let mut proof = Proof::new(TTL, at(0));
        for milli in 0..60_000 {
            proof.answered(Instant::from_start(Duration::from_millis(milli)));
        }
        assert!(proof.sent.len() <= 2 * KEPT_PER_TTL as usize, "{}", proof.sent.len());
        assert!(proof.valid_until() > at(65));
    }
}
