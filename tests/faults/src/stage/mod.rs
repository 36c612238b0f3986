//! Servers, ways, client processes, and those who look on.

mod cast;
mod cluster;
mod judge;
mod leftovers;
mod witness;

pub use cast::{Actor, Cast};
pub use cluster::Cluster;
pub(crate) use judge::Judge;
pub use leftovers::{left_now, leftovers};
pub(crate) use witness::Witness;

use std::sync::{Arc, Mutex, PoisonError};

use coord_api::Env;

use crate::history::{Line, What};

/// Where everybody's lines come together.
#[derive(Debug, Clone)]
pub struct Scribe {
    lines: Arc<Mutex<Vec<Line>>>,
    env: Env,
}

impl Default for Scribe {
    fn default() -> Scribe {
        Scribe {
            lines: Arc::default(),
            env: Env::system(),
        }
    }
}

impl Scribe {
    /// The clock that everybody shares, in ns.
    pub fn now(&self) -> u64 {
        u64::try_from(self.env.now().since_start().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Writes down what happens now.
    pub fn say(&self, who: &str, what: What) {
        let (at, who) = (self.now(), who.to_owned());
        self.add(Line { at, who, what });
    }

    pub(crate) fn add(&self, line: Line) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// What was written so far, in the order of time.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// The first that `find` finds, from the newest on.
    pub fn latest<T>(&self, find: impl FnMut(&Line) -> Option<T>) -> Option<T> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().rev().find_map(find)
    }
}
