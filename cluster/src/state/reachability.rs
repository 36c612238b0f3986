use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// One observer's opinion. Only the observer writes its row, so the higher version of a row is simply the later one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityRow {
    /// Counts the observer's changes of opinion.
    pub version: u64,
    /// The nodes that it watches and cannot reach.
    pub suspects: BTreeSet<NodeId>,
    /// Rows that suspect this observer, by their versions, which it has read and therefore survived.
    pub contradicts: BTreeMap<NodeId, u64>,
}

impl ReachabilityRow {
    /// Takes the later row. Rows of one version differ only where one of them knows more tombstones, so keeping
    /// everything loses nothing and does not depend on the order.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        match self.version.cmp(&other.version) {
            std::cmp::Ordering::Less => other.clone(),
            std::cmp::Ordering::Greater => self.clone(),
            std::cmp::Ordering::Equal => {
                let mut both = self.clone();
                both.suspects.extend(other.suspects.iter().cloned());
                for (accuser, version) in &other.contradicts {
                    let own = both.contradicts.entry(accuser.clone()).or_default();
                    *own = (*own).max(*version);
                }
                both
            }
        }
    }
}
