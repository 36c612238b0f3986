//! What happened in a simulated election, and the checker that looks at it.

use std::sync::{Arc, Mutex};

use coord_api::{Instant, Term};

/// Who was granted what, as it happened. Every grant is checked at once against all that were granted before.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    terms: Vec<(usize, Term)>,
    working: Vec<usize>,
    work_may_overlap: bool,
    wrong: Vec<String>,
    log: Vec<String>,
}

impl History {
    /// A candidate was elected: nobody else may be valid now, and the token must be above all before it.
    pub fn elected(&self, now: Instant, who: usize, term: &Term) {
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

    /// Whether work of two at once is wrong.
    pub fn work_excludes(&self, excludes: bool) {
        self.0.lock().unwrap().work_may_overlap = !excludes;
    }

    /// The work of a candidate begins; nobody else's may be going on.
    pub fn work_begins(&self, now: Instant, who: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.working.push(who);
        if inner.working.len() > 1 && !inner.work_may_overlap {
            let wrong = format!("work of {:?} at once", inner.working);
            inner.wrong(now, wrong);
        }
    }

    /// The work of a candidate has stopped.
    pub fn work_ends(&self, now: Instant, who: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.working.retain(|other| *other != who);
        inner.note(now, format!("{who} stopped working"));
    }

    /// Looks at all leaderships at this moment.
    pub fn sample(&self, now: Instant) {
        self.0.lock().unwrap().check_valid(now);
    }

    /// Notes something for the reader of a failure.
    pub fn note(&self, now: Instant, what: String) {
        self.0.lock().unwrap().note(now, what);
    }

    /// Notes what must not be.
    pub fn wrong(&self, now: Instant, what: String) {
        self.0.lock().unwrap().wrong(now, what);
    }

    /// Who leads validly now.
    pub fn leaders(&self) -> Vec<usize> {
        self.0.lock().unwrap().leaders()
    }

    /// How often somebody was elected.
    pub fn elections(&self) -> usize {
        self.0.lock().unwrap().terms.len()
    }

    /// What was wrong.
    pub fn violations(&self) -> Vec<String> {
        self.0.lock().unwrap().wrong.clone()
    }

    /// Everything, in order.
    pub fn log(&self) -> Vec<String> {
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
