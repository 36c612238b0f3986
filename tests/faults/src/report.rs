//! What many runs came to.

use std::collections::BTreeMap;
use std::fmt;

use crate::check::{self, Blame, Growth, Troubles, Verdict};
use crate::client::Store;
use crate::history::{Line, Outcome, What, calls};

/// One run in figures.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Its seed.
    pub seed: u64,
    /// Calls of our clients, and of the bare one.
    pub calls: (usize, usize),
    /// Calls of our clients a second before the first fault.
    pub rate: f64,
    /// How our clients' calls ended.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// How often each fault happened.
    pub faults: BTreeMap<String, usize>,
    /// What faults could not be done, or had to be done again.
    pub undone: Vec<String>,
    /// After which fault it took longest until everything worked again, and how long in ns.
    pub slowest: Option<(String, u64)>,
    /// Leaderships.
    pub leaderships: usize,
    /// Clients' memory.
    pub growth: Vec<Growth>,
    /// What the checkers say.
    pub verdicts: Vec<Verdict>,
}

/// All runs on one store.
#[derive(Debug, Clone)]
pub struct Report {
    /// Which.
    pub store: Store,
    /// Of each run.
    pub runs: Vec<Summary>,
}

// === impl Summary ===

impl Summary {
    /// Of this history.
    pub fn of(seed: u64, lines: &[Line], verdicts: Vec<Verdict>) -> Summary {
        let calls = calls(lines);
        let troubles = Troubles::of(lines);
        let (bare, ours): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.who.starts_with('b'));
        let mut outcomes = BTreeMap::new();
        for call in &ours {
            *outcomes
                .entry(ended(call.end.as_ref().map(|(_, outcome)| outcome)))
                .or_default() += 1;
        }
        let mut faults: BTreeMap<String, usize> = BTreeMap::new();
        for span in &troubles.spans {
            *faults.entry(span.name.clone()).or_default() += 1;
        }
        let noted = lines.iter().filter(|line| line.who == "nemesis");
        let undone = noted.filter_map(|line| match &line.what {
            What::Note { text } => Some(text.clone()),
            _ => None,
        });
        let end = lines.last().map_or(0, |line| line.at);
        let first = troubles.spans.iter().map(|span| span.from).min().unwrap_or(end);
        Summary {
            seed,
            calls: (ours.len(), bare.len()),
            rate: calls_a_second(lines, first),
            outcomes,
            undone: undone.collect(),
            faults,
            slowest: check::slowest(lines, &ours, &troubles),
            leaderships: check::intervals(lines).len(),
            growth: check::growth(lines),
            verdicts,
        }
    }

    /// Whether nothing is our fault.
    pub fn is_right(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.ours().next().is_none())
    }
}

/// How many calls of our clients began in each of the two seconds before this moment.
pub(crate) fn calls_a_second(lines: &[Line], before: u64) -> f64 {
    const WINDOW: u64 = 2_000_000_000;
    let begun = lines.iter().filter(|line| {
        matches!(line.what, What::Call { .. })
            && line.who.starts_with('c')
            && line.at < before
            && line.at + WINDOW >= before
    });
    begun.count() as f64 * 1e9 / WINDOW as f64
}

fn ended(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Found { .. } | Outcome::Done { .. }) => "ok",
        Some(Outcome::NotSent { .. }) => "not sent",
        Some(Outcome::Unknown { .. }) => "unknown",
        Some(_) => "definite",
        None => "caller killed",
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {:>3}: {:>5} calls ({:.0}/s before the first fault), {} leaderships, {} unknown",
            self.seed,
            self.calls.0,
            self.rate,
            self.leaderships,
            self.outcomes.get("unknown").unwrap_or(&0),
        )?;
        if let Some((after, took)) = &self.slowest {
            write!(f, ", slowest recovery {:.1} s ({after})", *took as f64 / 1e9)?;
        }
        let wrong: usize = self.verdicts.iter().map(|verdict| verdict.violations.len()).sum();
        let ours: usize = self.verdicts.iter().map(|verdict| verdict.ours().count()).sum();
        write!(f, ": {ours} violations of ours, {} of the store's", wrong - ours)?;
        match self.verdicts.iter().map(|verdict| verdict.undecided.len()).sum() {
            0_usize => Ok(()),
            undecided => write!(f, ", {undecided} undecided"),
        }
    }
}

// === impl Report ===

impl Report {
    /// Whether nothing is our fault.
    pub fn is_right(&self) -> bool {
        self.runs.iter().all(Summary::is_right)
    }

    fn sum(&self, each: impl Fn(&Summary) -> usize) -> usize {
        self.runs.iter().map(each).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &self.runs {
            for (outcome, count) in &run.outcomes {
                *outcomes.entry(outcome).or_default() += count;
            }
            for (fault, count) in &run.faults {
                *faults.entry(fault).or_default() += count;
            }
        }
        writeln!(f, "## {}\n", self.store.name())?;
        let seeds: Vec<String> = self.runs.iter().map(|run| run.seed.to_string()).collect();
        writeln!(f, "| | |\n| --- | --- |")?;
        writeln!(f, "| schedules | {} (seeds {}) |", self.runs.len(), seeds.join(", "))?;
        writeln!(
            f,
            "| operations | {}, and {} of the bare client |",
            self.sum(|run| run.calls.0),
            self.sum(|run| run.calls.1)
        )?;
        let rates = self.runs.iter().map(|run| run.rate);
        let lowest = rates.fold(f64::INFINITY, f64::min);
        writeln!(f, "| a second before the first fault, lowest | {lowest:.0} |")?;
        let outcomes: Vec<String> = outcomes
            .iter()
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        writeln!(f, "| outcomes | {} |", outcomes.join(", "))?;
        writeln!(f, "| leaderships | {} |", self.sum(|run| run.leaderships))?;
        let slowest = self
            .runs
            .iter()
            .filter_map(|run| run.slowest.as_ref().map(|slowest| (run.seed, slowest)));
        if let Some((seed, (after, took))) = slowest.max_by_key(|(_, slowest)| slowest.1) {
            let took = *took as f64 / 1e9;
            writeln!(f, "| slowest recovery | {took:.1} s, after {after}, seed {seed} |")?;
        }
        let growth = self.runs.iter().flat_map(|run| &run.growth);
        if let Some(longest) = growth.max_by_key(|growth| growth.last.saturating_sub(growth.first)) {
            writeln!(
                f,
                "| memory of the client that grew most | {} MB after 5 s, {} MB {:.0} s later |",
                longest.first / 1024,
                longest.last / 1024,
                longest.over as f64 / 1e9
            )?;
        }
        let all = self.sum(|run| run.faults.values().sum());
        let faults: Vec<String> = faults.iter().map(|(fault, count)| format!("{count} {fault}")).collect();
        writeln!(f, "| faults | {all}: {} |", faults.join(", "))?;
        let mut undone: BTreeMap<&str, usize> = BTreeMap::new();
        for text in self.runs.iter().flat_map(|run| &run.undone) {
            *undone.entry(text.trim()).or_default() += 1;
        }
        if !undone.is_empty() {
            let undone: Vec<String> = undone.iter().map(|(text, count)| format!("{count} × {text}")).collect();
            let undone = undone.join("; ").replace('\n', " ").replace('|', "/");
            writeln!(
                f,
                "| steps of faults that the store refused at first or for good | {undone} |"
            )?;
        }
        writeln!(
            f,
            "\n| checker | looked at | violations of ours | of the store's | undecided |\n| --- | --- | --- | --- | --- |"
        )?;
        let mut checkers: Vec<&str> = vec![];
        for verdict in self.runs.iter().flat_map(|run| &run.verdicts) {
            if !checkers.contains(&verdict.checker) {
                checkers.push(verdict.checker);
            }
        }
        for checker in checkers {
            let of_it = || {
                let verdicts = self.runs.iter().flat_map(|run| &run.verdicts);
                verdicts.filter(move |verdict| verdict.checker == checker)
            };
            let checked: usize = of_it().map(|verdict| verdict.checked).sum();
            let blamed = |blame| -> usize {
                let violations = of_it().flat_map(|verdict| &verdict.violations);
                violations.filter(|violation| violation.blame == blame).count()
            };
            let undecided: usize = of_it().map(|verdict| verdict.undecided.len()).sum();
            writeln!(
                f,
                "| {checker} | {checked} | {} | {} | {undecided} |",
                blamed(Blame::Ours),
                blamed(Blame::Store)
            )?;
        }
        Ok(())
    }
}
