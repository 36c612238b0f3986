use std::ops::ControlFlow;

use bytes::Bytes;
use tracing::{debug, info};

use super::{Singleton, Steps};
use crate::election::Pace;
use crate::{CheckpointError, Outcome, Progress, SingletonError, Step, Term};

/// Why a leadership's work ended before the job did.
enum Ended {
    /// It was told to stop: contend again.
    Told,
    Failed(SingletonError),
}

impl Singleton {
    /// Waits for its turn, and does the job: from where the last leader left to the end. After a loss it waits for its
    /// turn again.
    ///
    /// A step that fails ends it, with the checkpoint before that step as it is. Dropping the future drops the step,
    /// then gives the turn to the next.
    pub async fn run(&self, steps: &Steps) -> Result<Outcome, SingletonError> {
        steps.check()?;
        if self.once
            && self
                .checkpoints
                .load()
                .await
                .is_ok_and(|found| found.progress.is_done())
        {
            return Ok(Outcome::AlreadyDone);
        }
        self.election.run_while_leader(|term| self.lead(term, steps)).await?
    }

    async fn lead(&self, term: Term, steps: &Steps) -> ControlFlow<Result<Outcome, SingletonError>> {
        match self.work(&term, steps).await {
            Ok(outcome) => ControlFlow::Break(Ok(outcome)),
            Err(Ended::Told) => ControlFlow::Continue(()),
            Err(Ended::Failed(error)) => ControlFlow::Break(Err(error)),
        }
    }

    async fn work(&self, term: &Term, steps: &Steps) -> Result<Outcome, Ended> {
        let checkpoints = &self.checkpoints;
        // Each of many copies gets its turn in the end: a look is cheaper than a claim.
        if self.once && self.try_to(term, || checkpoints.load()).await?.progress.is_done() {
            return Ok(Outcome::AlreadyDone);
        }
        let left = self.try_to(term, || checkpoints.claim(term.token())).await?;
        let (mut place, mut state) = match left.progress {
            Progress::Start => (0, Bytes::new()),
            Progress::Next { step, state } => (steps.find(&step).map_err(Ended::Failed)?, state),
            Progress::Done if self.once => return Ok(Outcome::AlreadyDone),
            Progress::Done => (0, Bytes::new()),
        };
        loop {
            let step = Step {
                state,
                term: term.clone(),
            };
            state = self.step(term, steps, place, step).await?;
            place += 1;
            let progress = match steps.name(place) {
                Some(next) => Progress::Next {
                    step: next.to_owned(),
                    state: state.clone(),
                },
                None if self.once => Progress::Done,
                None => Progress::Start,
            };
            self.try_to(term, || checkpoints.save(term.token(), progress.clone()))
                .await?;
            if place == steps.len() {
                info!(job = %self.config.key, token = term.token(), "done");
                return Ok(Outcome::Done);
            }
        }
    }

    /// One step. Told to stop, it may do so in its own way until leadership has ended; what it gives then counts for
    /// nothing.
    async fn step(&self, term: &Term, steps: &Steps, place: usize, step: Step) -> Result<Bytes, Ended> {
        let name = steps.name(place).unwrap_or_default();
        let Some(mut work) = steps.start(place, step) else {
            return Err(Ended::Told);
        };
        debug!(job = %self.config.key, token = term.token(), step = name, "step begins");
        tokio::select! {
            biased;
            () = term.stopped() => {}
            given = &mut work => return match given {
                // By the clock, should the task that tells to stop not have run.
                _ if !term.is_valid() => Err(Ended::Told),
                Ok(state) => Ok(state),
                Err(source) => {
                    let step = name.to_owned();
                    Err(Ended::Failed(SingletonError::Step { step, source }))
                }
            },
        }
        tokio::select! {
            biased;
            _ = term.lost() => {}
            _ = work => {}
        }
        debug!(job = %self.config.key, token = term.token(), step = name, "step cancelled");
        Err(Ended::Told)
    }

    /// Asks the checkpoint store, and again while it is only out of reach, until told to stop.
    async fn try_to<T, F>(&self, term: &Term, ask: impl Fn() -> F) -> Result<T, Ended>
    where
        F: Future<Output = Result<T, CheckpointError>>,
    {
        let mut pace = Pace::new();
        loop {
            let answer = tokio::select! {
                biased;
                () = term.stopped() => return Err(Ended::Told),
                answer = ask() => answer,
            };
            match answer {
                Ok(done) => return Ok(done),
                Err(error) if error.is_transient() => {
                    debug!(job = %self.config.key, "{error}");
                    tokio::select! {
                        biased;
                        () = term.stopped() => return Err(Ended::Told),
                        () = pace.wait(self.session.coordinator().env()) => {}
                    }
                }
                // Its successor was faster than the news of its own end.
                Err(CheckpointError::Superseded { .. }) if self.ends(term).await => return Err(Ended::Told),
                Err(error) => return Err(Ended::Failed(error.into())),
            }
        }
    }

    /// Whether leadership has ended, or does as soon as our watch tells. If it does not, whoever has claimed with a newer
    /// token is no successor, and contending again would not help.
    async fn ends(&self, term: &Term) -> bool {
        let coordinator = self.session.coordinator();
        let (env, patience) = (coordinator.env(), coordinator.capabilities().call_deadline);
        !term.is_valid() || env.timeout_at(env.now() + patience, term.lost()).await.is_some()
    }
}
