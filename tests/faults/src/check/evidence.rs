//! What others than our drivers saw.

use super::Blame;
use crate::history::{Line, MS, What};

/// How far apart two early ends may be to have one cause: the store's fault shows within 100 ms at all of its leases, and a
/// watch tells within a second.
const SAME_CAUSE: u64 = 1500 * MS;

pub(super) struct Evidence {
    revoked: Vec<(u64, u64)>,
    vanished: Vec<(u64, u64)>,
    early: Vec<u64>,
}

impl Evidence {
    pub(super) fn of(lines: &[Line]) -> Evidence {
        let mut evidence = Evidence {
            revoked: vec![],
            vanished: vec![],
            early: vec![],
        };
        for line in lines {
            match line.what {
                What::Revoked { lease } => evidence.revoked.push((lease, line.at)),
                What::Vanished { token } => evidence.vanished.push((token, line.at)),
                What::EndedEarly { .. } => evidence.early.push(line.at),
                _ => {}
            }
        }
        evidence
    }

    /// When a third party ended this lease: from then on only fencing covers.
    pub(super) fn revoked(&self, lease: u64) -> Option<u64> {
        let of_it = self.revoked.iter().filter(|(revoked, _)| *revoked == lease);
        of_it.map(|(_, at)| *at).min()
    }

    /// Whether the bare client lost a lease between the two, or so close that it may have the same cause, that its own
    /// renewals had proven.
    pub(super) fn ended_early(&self, from: u64, to: u64) -> bool {
        let (from, to) = (from.saturating_sub(SAME_CAUSE), to.saturating_add(SAME_CAUSE));
        self.early.iter().any(|early| (from..=to).contains(early))
    }

    /// Whose fault it is that the leader of this token did not lead until then. The store's only if its entry was seen to
    /// go too early, and at the same time the bare client lost a lease that its own renewals had proven.
    pub(super) fn blame(&self, token: u64, until: u64) -> (Blame, &'static str) {
        let Some((_, gone)) = self.vanished.iter().find(|(vanished, _)| *vanished == token) else {
            return (Blame::Ours, "nobody saw the first one's entry go early");
        };
        if *gone >= until {
            return (Blame::Ours, "the first one's entry was there all the time");
        }
        if self.ended_early(*gone, *gone) {
            return (Blame::Store, "the bare client lost a proven lease at the same time");
        }
        (
            Blame::Ours,
            "the first one's entry went early, and no lease of the bare client did",
        )
    }
}
