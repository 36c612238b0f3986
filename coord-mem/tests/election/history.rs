//! What happened in a simulated election, and the checker that looks at it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_api::{Env, Instant, Term, Unelected, margin};
use coord_recipes_tests::{Line, What, check};
use futures::FutureExt;

use crate::sim::TTL;

/// What the timers of simulated time are rounded to.
const TICK: Duration = Duration::from_millis(1);

/// Who was granted what, as it happened. Every grant is checked at once against all that were granted before; and in the
/// end, the lines that each candidate wrote are checked as those of real processes are.
#[derive(Clone)]
pub(crate) struct History(Arc<Mutex<Inner>>);

struct Inner {
    world: Env,
    terms: Vec<(usize, Term)>,
    /// Those who count on their leadership or have just ceased to, with their clocks.
    going_on: Vec<(usize, Term, Env)>,
    lines: Vec<Line>,
    working: Vec<usize>,
    somebody_stands_still: bool,
    wrong: Vec<String>,
    log: Vec<String>,
}

impl History {
    pub(crate) fn new(world: &Env) -> History {
        History(Arc::new(Mutex::new(Inner {
            world: world.clone(),
            terms: vec![],
            going_on: vec![],
            lines: vec![],
            working: vec![],
            somebody_stands_still: false,
            wrong: vec![],
            log: vec![],
        })))
    }

    /// A candidate was elected: nobody else may be valid now, and the token must be above all before it.
    pub(crate) fn elected(&self, env: &Env, who: usize, term: &Term) {
        let mut inner = self.0.lock().unwrap();
        let now = env.now();
        inner.note(now, format!("{who} elected with {}", term.token()));
        if let Some((_, last)) = inner.terms.iter().max_by_key(|(_, term)| term.token())
            && last.token() >= term.token()
        {
            let wrong = format!("token {} of {who} after {}", term.token(), last.token());
            inner.wrong(now, wrong);
        }
        inner.terms.push((who, term.clone()));
        inner.line(who, What::Elected { token: term.token() });
        inner.going_on.push((who, term.clone(), env.clone()));
        inner.count_on();
        inner.check_valid(now);
    }

    /// Everybody writes down until when it counts on its leadership.
    pub(crate) fn count_on(&self) {
        self.0.lock().unwrap().count_on();
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
        inner.count_on();
        if let Some(at) = inner.going_on.iter().position(|(other, ..)| *other == who) {
            let (_, term, _) = inner.going_on.remove(at);
            let over = if term.is_valid() {
                None
            } else {
                term.lost().now_or_never()
            };
            let (token, given_back) = (term.token(), matches!(over, None | Some(Unelected::Closed)));
            inner.line(who, What::Ended { token, given_back });
        }
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
        let inner = self.0.lock().unwrap();
        let by_lines = check(&inner.lines);
        inner.wrong.iter().cloned().chain(by_lines).collect()
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

    /// By the world's clock; a candidate's own may have jumped ahead.
    fn count_on(&mut self) {
        let now = self.world.now().since_start();
        for (who, term, env) in std::mem::take(&mut self.going_on) {
            let left = (term.valid_until() - margin(TTL)) - env.now();
            let (token, until) = (term.token(), now + left);
            self.line(who, What::Valid { token, until });
            if !left.is_zero() {
                self.going_on.push((who, term, env));
            }
        }
    }

    fn line(&mut self, who: usize, what: What) {
        let (at, who) = (self.world.now().since_start(), who.to_string());
        self.lines.push(Line { at, who, what });
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
