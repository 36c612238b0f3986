use std::collections::BTreeSet;
use std::time::Duration;

use crate::NodeId;

/// Decides which unreachable nodes are put down. Asked by the leader in its own view, once per gossip round.
///
/// Putting down cannot be taken back, and during a partition each side has a leader: whoever must not split should
/// decide from outside, with a store or a quorum as the judge.
pub trait Downing: Send {
    /// The nodes to put down now, out of those that are `unreachable`.
    fn decide(&mut self, unreachable: &BTreeSet<NodeId>, now: Duration) -> Vec<NodeId>;
}

/// Nobody is put down unless a user or an outside judge says so. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct DowningOff;

impl Downing for DowningOff {
    fn decide(&mut self, _unreachable: &BTreeSet<NodeId>, _now: Duration) -> Vec<NodeId> {
        Vec::new()
    }
}

/// Puts all unreachable nodes down once the set of them has not changed for a while.
#[derive(Debug, Clone)]
pub struct DowningAfterStable {
    stable: Duration,
    set: BTreeSet<NodeId>,
    since: Duration,
}

impl DowningAfterStable {
    /// Waits until the unreachable set has been the same for `stable`.
    pub fn new(stable: Duration) -> Self {
        Self {
            stable,
            set: BTreeSet::new(),
            since: Duration::ZERO,
        }
    }
}

impl Downing for DowningAfterStable {
    fn decide(&mut self, unreachable: &BTreeSet<NodeId>, now: Duration) -> Vec<NodeId> {
        if *unreachable != self.set {
            self.set.clone_from(unreachable);
            self.since = now;
        }
        if now.saturating_sub(self.since) < self.stable {
            return Vec::new();
        }
        self.set.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incarnation;

    #[test]
    fn waits_until_the_set_is_stable() {
        let node = |port| NodeId::new(crate::Address::new("n", port).unwrap(), Incarnation(1));
        let mut downing = DowningAfterStable::new(Duration::from_secs(10));
        let one = BTreeSet::from([node(1)]);
        let two = BTreeSet::from([node(1), node(2)]);
        assert!(downing.decide(&one, Duration::from_secs(1)).is_empty());
        assert!(
            downing.decide(&two, Duration::from_secs(9)).is_empty(),
            "a change starts the wait again"
        );
        assert!(downing.decide(&two, Duration::from_secs(18)).is_empty());
        assert_eq!(downing.decide(&two, Duration::from_secs(19)).len(), 2);
        assert!(DowningOff.decide(&two, Duration::from_secs(999)).is_empty());
    }
}
