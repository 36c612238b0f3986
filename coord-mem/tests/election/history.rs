//! What happened in a simulated election, and the checker that looks at it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_api::{Instant, Term};

/// What the timers of simulated time are rounded to.
const TICK: Duration = Duration::from_millis(1);

/// Who was granted what, as it happened. Every grant is checked at once against all that were granted before.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    terms: Vec<(usize, Term)>,
    working: Vec<usize>,
    somebody_stands_still: bool,
    wrong: Vec<String>,
    log: Vec<String>,
}

impl History {
    /// A candidate was elected: nobody else may be valid now, and the token must be above all before it.
    pub(crate) fn elected(&self, now: Instant, who: usize, term: &Term) {
        let mut inner = self.0.lock().unwrap();
        inner.note(now, format!("{who} elected with {}", term.token()));
        if let Some((_, last)) = inner.terms.iter().max_by_key(|(_, term)| term.token())
            && last.token() >= term.token()
        {
            let wrong = format!("token {} of {who} after {}", term.token(), last.token());
            inner.wrong(now, wrong);
        }
        inner.terms.push((who, term.clone()));
        inner.check_valid(now);
    }

    /// Whether every process runs all the time: then work of two at once is wrong, and so is a call to stop that comes
    /// late.
    pub(crate) fn everybody_runs(&self, runs: bool) {
        self.0.lock().unwrap().somebody_stands_still = !runs;
    }

    /// The work was told to stop: in time to do so before its leadership ends.
    pub(crate) fn told_to_stop(&self, now: Instant, who: usize, term: &Term) {
        let mut inner = self.0.lock().unwrap();
        if now > term.stop_at() + TICK && !inner.somebody_stands_still {
            let late = now - term.stop_at();
            inner.wrong(now, format!("{who} was told to stop {late:?} late"));
        }
    }

    /// The work of a candidate begins; nobody else's may be going on.
    pub(crate) fn work_begins(&self, now: Instant, who: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.working.push(who);
        if inner.working.len() > 1 && !inner.somebody_stands_still {
            let wrong = format!("work of {:?} at once", inner.working);
            inner.wrong(now, wrong);
        }
    }

    /// The work of a candidate has stopped.
    pub(crate) fn work_ends(&self, now: Instant, who: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.working.retain(|other| *other != who);
        inner.note(now, format!("{who} stopped working"));
    }

    /// Looks at all leaderships at this moment.
    pub(crate) fn sample(&self, now: Instant) {
        self.0.lock().unwrap().check_valid(now);
    }

    /// Notes something for the reader of a failure.
    pub(crate) fn note(&self, now: Instant, what: String) {
        self.0.lock().unwrap().note(now, what);
    }

    /// Notes what must not be.
    pub(crate) fn wrong(&self, now: Instant, what: String) {
        self.0.lock().unwrap().wrong(now, what);
    }

    /// Who leads validly now.
    pub(crate) fn leaders(&self) -> Vec<usize> {
        self.0.lock().unwrap().leaders()
    }

    /// How often somebody was elected.
    pub(crate) fn elections(&self) -> usize {
        self.0.lock().unwrap().terms.len()
    }

    /// What was wrong.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.0.lock().unwrap().wrong.clone()
    }

    /// Everything, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        self.0.lock().unwrap().log.clone()
    }
}

impl Inner {
    fn leaders(&self) -> Vec<usize> {
        let valid = self.terms.iter().filter(|(_, term)| term.is_valid());
        valid.map(|(who, _)| *who).collect()
    }

    fn check_valid(&mut self, now: Instant) {
        let leaders = self.leaders();
        if leaders.len() > 1 {
            self.wrong(now, format!("{leaders:?} lead at once"));
        }
    }

    fn note(&mut self, now: Instant, what: String) {
        self.log.push(format!("{:>10.3?} {what}", now.since_start()));
    }

    fn wrong(&mut self, now: Instant, what: String) {
        self.note(now, format!("WRONG: {what}"));
        self.wrong.push(what);
    }
}
