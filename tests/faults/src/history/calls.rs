use std::collections::BTreeMap;

use super::{Line, Op, Outcome, What};

/// A call from its beginning to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Who called.
    pub who: String,
    /// When it began.
    pub from: u64,
    /// When it ended, and how; nothing if its caller died before.
    pub end: Option<(u64, Outcome)>,
    /// What was asked.
    pub op: Op,
}

/// All calls of a history, in the order of their beginnings.
pub fn calls(lines: &[Line]) -> Vec<Call> {
    let mut open: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    let mut calls = vec![];
    for line in lines {
        match &line.what {
            What::Call { id, op } => {
                open.insert((&line.who, *id), calls.len());
                calls.push(Call {
                    who: line.who.clone(),
                    from: line.at,
                    end: None,
                    op: op.clone(),
                });
            }
            What::Return { id, outcome } => {
                if let Some(call) = open.remove(&(line.who.as_str(), *id)) {
                    calls[call].end = Some((line.at, outcome.clone()));
                }
            }
            _ => {}
        }
    }
    calls.sort_by_key(|call| call.from);
    calls
}
