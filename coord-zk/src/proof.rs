use std::collections::VecDeque;
use std::time::Duration;

use coord_api::Instant;

/// How many send times are kept per ttl; more renewals than that are not told apart.
const KEPT_PER_TTL: u32 = 64;

/// Until when a session surely lives.
///
/// A follower passes the touch of a session on to the leader with its next ping, and the touch is lost when it dies
/// before. So an answered renewal proves only those that were there at least a ping earlier: half a tick, which is at
/// most a quarter of the ttl. When one was there is not known more exactly than between its sending and its answer: a
/// follower that stood still may answer two in a row, and die with the touches of both.
#[derive(Debug)]
pub(crate) struct Proof {
    ttl: Duration,
    /// The renewals that were answered, oldest first.
    renewals: VecDeque<Renewal>,
    valid_until: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Renewal {
    sent: Instant,
    answered: Instant,
}

impl Proof {
    /// For a session that was asked for at `sent` and exists. The leader itself creates it, and counts from then on:
    /// no second proof is needed.
    pub(crate) fn new(ttl: Duration, sent: Instant) -> Proof {
        let connect = Renewal { sent, answered: sent };
        Proof {
            ttl,
            renewals: VecDeque::from([connect]),
            valid_until: sent + ttl,
        }
    }

    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// A renewal that was sent at `sent` has been answered at `now`.
    pub(crate) fn answered(&mut self, sent: Instant, now: Instant) {
        // A quarter of the ttl between the two sendings, of which a quick answer may take up to a twentieth.
        let (ping, quick) = (self.ttl / 4, self.ttl / 20);
        let proves = |earlier: &Renewal| {
            let there = earlier.answered.max(earlier.sent + quick);
            there + (ping - quick) <= sent
        };
        let proven = self.renewals.iter().rev().find(|earlier| proves(earlier)).copied();
        if let Some(proven) = proven {
            self.valid_until = self.valid_until.max(proven.sent + self.ttl);
            while self.renewals.front().is_some_and(|oldest| oldest.sent < proven.sent) {
                self.renewals.pop_front();
            }
        }
        let newest = self.renewals.back();
        if newest.is_none_or(|newest| newest.sent + self.ttl / KEPT_PER_TTL <= sent) {
            self.renewals.push_back(Renewal { sent, answered: now });
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
        proof.answered(at(102), at(102));
        assert_eq!(proof.valid_until(), at(108));
        proof.answered(at(104), at(104));
        assert_eq!(proof.valid_until(), at(110));
        // Only a second later: the touch before may still be with the follower.
        proof.answered(at(105), at(105));
        assert_eq!(proof.valid_until(), at(110));
        proof.answered(at(107), at(107));
        assert_eq!(proof.valid_until(), at(113));
    }

    /// The follower stood still, answers both renewals in a row, and may die with the touches of both.
    #[test]
    fn a_renewal_that_was_answered_late_proves_nothing_to_the_next_one() {
        let mut proof = Proof::new(TTL, at(100));
        proof.answered(at(102), at(102));
        proof.answered(at(104), at(107));
        assert_eq!(proof.valid_until(), at(110));
        proof.answered(at(107), at(107));
        assert_eq!(proof.valid_until(), at(110));
        // By now its touch has been passed on.
        proof.answered(at(109), at(109));
        assert_eq!(proof.valid_until(), at(115));
    }

    #[test]
    fn renewals_in_step_prove_each_other_although_answers_take_a_moment() {
        let mut proof = Proof::new(TTL, at(100));
        for n in 1..10 {
            let sent = at(100 + 2 * n);
            proof.answered(sent, sent + TTL / 20);
            assert_eq!(proof.valid_until(), at(98 + 2 * n) + TTL);
        }
    }

    #[test]
    fn an_older_renewal_that_is_answered_late_takes_nothing_back() {
        let mut proof = Proof::new(TTL, at(100));
        proof.answered(at(103), at(103));
        proof.answered(at(106), at(106));
        assert_eq!(proof.valid_until(), at(111));
        proof.answered(at(101), at(106));
        assert_eq!(proof.valid_until(), at(111));
    }

    #[test]
    fn incessant_renewals_cost_no_memory() {
        let mut proof = Proof::new(TTL, at(0));
        for milli in 0..60_000 {
            let now = Instant::from_start(Duration::from_millis(milli));
            proof.answered(now, now);
        }
        let kept = proof.renewals.len();
        assert!(kept <= 2 * KEPT_PER_TTL as usize, "{kept}");
        assert!(proof.valid_until() > at(65));
    }
}
