use std::collections::{BTreeMap, VecDeque};

use coord_api::{Env, Operation};

use super::{Fault, Odds};

/// Which fault which call of a client meets.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// A list, not a map: scripts are short, and their order is kept.
    script: VecDeque<(Option<Operation>, Fault)>,
    odds: Option<Odds>,
    met: BTreeMap<&'static str, u64>,
}

impl Plan {
    pub(super) fn push(&mut self, operation: Option<Operation>, fault: Fault) {
        self.script.push_back((operation, fault));
    }

    pub(super) fn set_odds(&mut self, odds: Option<Odds>) {
        self.odds = odds;
    }

    pub(super) fn clear(&mut self) {
        self.script.clear();
        self.odds = None;
    }

    pub(super) fn scripted(&self) -> usize {
        self.script.len()
    }

    /// A call met this.
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    pub(super) fn met(&self) -> BTreeMap<&'static str, u64> {
        self.met.clone()
    }

    /// The fault of this call, and whether the watches have a gap first.
    pub(crate) fn draw(&mut self, env: &Env, operation: Operation) -> (Fault, bool) {
        let scripted = self
            .script
            .iter()
            .position(|(of, _)| of.is_none_or(|of| of == operation));
        if let Some((_, fault)) = scripted.and_then(|at| self.script.remove(at)) {
            return (fault, false);
        }
        match &self.odds {
            None => (Fault::Pass, false),
            Some(odds) => (odds.draw_fault(env, operation), odds.draw_gap(env)),
        }
    }
}
