use std::fmt;

/// What a checker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which checker.
    pub checker: &'static str,
    /// How many things it looked at.
    pub checked: usize,
    /// What is wrong.
    pub violations: Vec<Violation>,
    /// What it could not decide in the time that it had.
    pub undecided: Vec<String>,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Whose fault it is.
    pub blame: Blame,
    /// What it is.
    pub text: String,
}

/// Whose fault a violation is. Ours until the history holds evidence of another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// Ours.
    Ours,
    /// The store's: clients without our drivers saw the same.
    Store,
}

// === impl Verdict ===

impl Verdict {
    pub(crate) fn new(checker: &'static str) -> Verdict {
        Verdict {
            checker,
            checked: 0,
            violations: vec![],
            undecided: vec![],
        }
    }

    pub(crate) fn wrong(&mut self, blame: Blame, text: impl Into<String>) {
        let text = text.into();
        self.violations.push(Violation { blame, text });
    }

    /// Those that are ours.
    pub fn ours(&self) -> impl Iterator<Item = &Violation> {
        self.violations
            .iter()
            .filter(|violation| violation.blame == Blame::Ours)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.blame {
            Blame::Ours => "ours",
            Blame::Store => "the store's",
        };
        write!(f, "[{whose}] {}", self.text)
    }
}
