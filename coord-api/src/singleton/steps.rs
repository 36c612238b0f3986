use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};

use crate::{SingletonError, Term};

type Source = Box<dyn std::error::Error + Send + Sync>;
type Work = Box<dyn Fn(Step) -> BoxFuture<'static, Result<Bytes, Source>> + Send + Sync>;

/// The steps of a job, in their order. Each is idempotent: run twice from one state, it does the same and gives the same.
///
/// Names are what checkpoints refer to: a program that takes over from an older version of itself has to know the names
/// of the steps at which that one may have stopped.
#[derive(Default)]
pub struct Steps(Vec<(String, Work)>);

/// What a step gets: the state from which it starts, and the leadership under which it runs.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) state: Bytes,
    pub(super) term: Term,
}

// === impl Steps ===

impl Steps {
    /// None yet.
    pub fn new() -> Steps {
        Steps::default()
    }

    /// One more step, which gives the state for the next one. What the last one gives is thrown away.
    #[must_use]
    pub fn then<F, Fut, S, E>(mut self, name: impl Into<String>, work: F) -> Steps
    where
        F: Fn(Step) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, E>> + Send + 'static,
        S: Into<Bytes> + 'static,
        E: Into<Source> + 'static,
    {
        let work: Work = Box::new(move |step| work(step).map_ok(Into::into).map_err(Into::into).boxed());
        self.0.push((name.into(), work));
        self
    }

    pub(super) fn check(&self) -> Result<(), SingletonError> {
        let mut names = BTreeSet::new();
        let problem = match self.0.iter().find(|(name, _)| !names.insert(name)) {
            Some((twice, _)) => format!("two steps are called {twice:?}; each needs a name of its own"),
            None if self.0.is_empty() => "a job needs at least one step".to_owned(),
            None => return Ok(()),
        };
        Err(SingletonError::InvalidSteps(problem))
    }

    /// Which one it is by its place.
    pub(super) fn find(&self, step: &str) -> Result<usize, SingletonError> {
        let place = self.0.iter().position(|(name, _)| name == step);
        place.ok_or_else(|| SingletonError::UnknownStep {
            step: step.to_owned(),
            known: self.0.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn name(&self, place: usize) -> Option<&str> {
        self.0.get(place).map(|(name, _)| name.as_str())
    }

    pub(super) fn start(&self, place: usize, step: Step) -> Option<BoxFuture<'static, Result<Bytes, Source>>> {
        self.0.get(place).map(|(_, work)| work(step))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

// === impl Step ===

impl Step {
    /// The state that the step before has given; empty for the first.
    pub fn state(&self) -> &Bytes {
        &self.state
    }

    /// The fencing token, for whatever the step writes to.
    pub fn token(&self) -> u64 {
        self.term.token()
    }

    /// The leadership: a step that takes long awaits [`stopped`](Term::stopped) beside its work. What it gives after that
    /// is not written down.
    pub fn term(&self) -> &Term {
        &self.term
    }
}
