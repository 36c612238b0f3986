use std::collections::BTreeMap;

use crate::history::{Line, Trouble, What};

/// When something was wrong, by the nemesis' own lines.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// From, to, and what was disturbed.
    pub spans: Vec<Span>,
}

/// One fault.
#[derive(Debug, Clone)]
pub struct Span {
    /// Its number.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// To whom.
    pub target: String,
    /// When it began.
    pub from: u64,
    /// When it ended; the end of the history if it never did.
    pub to: u64,
    /// What it may disturb.
    pub trouble: Trouble,
}

impl Troubles {
    /// The faults of a history.
    pub fn of(lines: &[Line]) -> Troubles {
        let end = lines.iter().map(|line| line.at).max().unwrap_or_default();
        let mut spans: BTreeMap<usize, Span> = BTreeMap::new();
        for line in lines {
            match &line.what {
                What::Fault {
                    number,
                    name,
                    target,
                    trouble,
                } => {
                    let span = Span {
                        number: *number,
                        name: name.clone(),
                        target: target.clone(),
                        from: line.at,
                        to: end,
                        trouble: *trouble,
                    };
                    spans.insert(*number, span);
                }
                What::Healed { number } => {
                    if let Some(span) = spans.get_mut(number) {
                        span.to = line.at;
                    }
                }
                _ => {}
            }
        }
        Troubles {
            spans: spans.into_values().collect(),
        }
    }

    /// Until when, at `at`, something may have kept the lease of a dead client alive: servers that could not end it, or
    /// a renewal of it that was still on its way.
    pub fn leases_kept_alive_until(&self, at: u64) -> u64 {
        let may = |span: &&Span| match span.trouble {
            Trouble::Servers => true,
            Trouble::Ways => ["late requests", "delay"].iter().any(|way| span.name.contains(way)),
            Trouble::Client | Trouble::None => false,
        };
        let before = self.spans.iter().filter(|span| span.from <= at);
        before.filter(may).map(|span| span.to.min(at)).max().unwrap_or_default()
    }

    /// Whether this client's process stood still at some time between the two.
    pub fn stood_still(&self, who: &str, from: u64, to: u64) -> bool {
        let client = who.split('.').next().unwrap_or_default();
        let of_it = |span: &&Span| span.target == client && span.name.contains("pause");
        self.spans
            .iter()
            .filter(of_it)
            .any(|span| span.from <= to && span.to >= from)
    }

    /// When the last fault ended.
    pub fn last(&self) -> Option<u64> {
        self.spans.iter().map(|span| span.to).max()
    }
}
