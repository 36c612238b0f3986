use std::collections::BTreeSet;

/// Answers are processed nearly in order: more than this ahead is a gap that will not close.
const AHEAD: usize = 256;

/// The latest versions of one guard between which only creates of our own lie.
///
/// Whoever saw an incarnation at one of them may rely on the newest: no other create came in between, and one of our
/// own with the same name would have replaced what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    first: i32,
    last: i32,
    /// Ours too, but what lies before them is not known yet.
    ahead: BTreeSet<i32>,
}

impl Run {
    pub(crate) fn new(version: i32) -> Run {
        Run {
            first: version,
            last: version,
            ahead: BTreeSet::new(),
        }
    }

    /// A create of our own moved the guard to this version.
    pub(crate) fn ours(&mut self, version: i32) {
        if version <= self.last {
            return;
        }
        self.ahead.insert(version);
        while self.ahead.remove(&self.last.wrapping_add(1)) {
            self.last = self.last.wrapping_add(1);
        }
        if self.ahead.len() > AHEAD {
            *self = Run::new(version);
        }
    }

    /// The guard was seen at this version; who moved it there is not known.
    pub(crate) fn seen(&mut self, version: i32) {
        if version > self.last && !self.ahead.contains(&version) {
            *self = Run::new(version);
        }
    }

    /// Whether nothing later is known of this guard: only then does what was seen at this version still hold.
    pub(crate) fn is_newest(&self, version: i32) -> bool {
        version >= self.last && self.ahead.last().is_none_or(|ahead| version >= *ahead)
    }

    /// The latest version that we know of.
    pub(crate) fn latest(&self) -> i32 {
        self.ahead.last().map_or(self.last, |ahead| self.last.max(*ahead))
    }

    /// The version to expect for an incarnation that was there when the guard stood at `version`.
    pub(crate) fn newest(&self, version: i32) -> i32 {
        if (self.first..=self.last).contains(&version) {
            self.last
        } else {
            version
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_creates_keep_a_run_going_in_whatever_order_they_are_processed() {
        let mut run = Run::new(5);
        run.ours(7);
        assert_eq!((run.newest(5), run.newest(7)), (5, 7));
        assert!(run.is_newest(7) && !run.is_newest(6));
        run.ours(6);
        assert_eq!((run.newest(5), run.newest(6), run.newest(7)), (7, 7, 7));
    }

    #[test]
    fn a_move_of_others_ends_a_run() {
        let mut run = Run::new(5);
        run.ours(6);
        run.seen(9);
        assert_eq!((run.newest(5), run.newest(6), run.newest(9)), (5, 6, 9));
        run.ours(11);
        assert_eq!((run.newest(9), run.newest(11)), (9, 11));
        // Who made 10 is not known: an incarnation of before must not be taken for one of after.
        run.seen(12);
        assert_eq!((run.newest(9), run.newest(11), run.newest(12)), (9, 11, 12));
    }

    #[test]
    fn a_gap_costs_no_memory() {
        let mut run = Run::new(0);
        for version in 2..10_000 {
            run.ours(version);
        }
        assert!(run.ahead.len() <= AHEAD);
    }
}
