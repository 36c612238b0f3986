//! The loop: find a cluster, be in it, find one again.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Error, Instant, Result, Task};
use coord_cluster::Phase;
use tokio::sync::watch;

use crate::config::Keys;
use crate::handle::Shared;
use crate::member::Exit;
use crate::office::Held;
use crate::state::wait;
use crate::vigil::Vigil;
use crate::{Cluster, Config, End, Event, Reason, Record, State};

/// How long a node may take to leave when another one told it to.
const LEAVE_WITHIN: Duration = Duration::from_secs(30);
/// How many attempts to give something back may be under way at once; each ends by itself.
const MAX_RETIRING: usize = 8;

/// The one state machine. What belongs to an attempt is a future that it owns: an abandoned attempt has no timers and no
/// callbacks left that could fire.
pub(crate) struct Runner {
    pub(crate) coordinator: Arc<dyn Coordinator>,
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) env: Env,
    pub(crate) shared: Arc<Shared>,
    pub(crate) leave: watch::Receiver<Option<Instant>>,
    pub(crate) attempt: u64,
    pub(crate) vigil: Option<Vigil>,
    retiring: Vec<Task>,
    store_failed: bool,
}

/// What a search ended with.
pub(crate) enum Found {
    /// In a cluster; with the leader's entry, if this node has formed it.
    Member(Record, Option<Box<Held>>),
    /// Asked to leave, by then.
    Leave(Instant),
    /// The end.
    End(End),
}

// === impl Runner ===

impl Runner {
    pub(crate) fn new(
        coordinator: Arc<dyn Coordinator>,
        cluster: Arc<dyn Cluster>,
        config: Config,
        shared: Arc<Shared>,
        leave: watch::Receiver<Option<Instant>>,
    ) -> Result<Runner> {
        config.check(&coordinator.capabilities())?;
        Ok(Runner {
            keys: Keys::below(&config.prefix)?,
            env: coordinator.env().clone(),
            coordinator,
            cluster,
            config,
            shared,
            leave,
            attempt: 0,
            vigil: None,
            retiring: Vec::new(),
            store_failed: false,
        })
    }

    pub(crate) async fn run(mut self) {
        let end = self.live().await;
        self.shared.tell(Event::Stopped(end.clone()));
        self.shared.set(State::Stopped(end));
    }

    async fn live(&mut self) -> End {
        loop {
            let (record, held) = match self.find().await {
                Found::Member(record, held) => (record, held),
                Found::Leave(deadline) => return self.depart(deadline, None).await,
                Found::End(end) => return end,
            };
            match self.serve(record, held).await {
                Exit::Leave { deadline, held } => {
                    let deadline = deadline.unwrap_or(self.env.now() + LEAVE_WITHIN);
                    return self.depart(deadline, Some((record, held))).await;
                }
                Exit::NodeStopped => return End::NodeStopped,
                Exit::Superseded => {
                    self.shared.tell(Event::Superseded { old: record });
                    // If it has stopped, the search finds that out.
                    let _ = self.cluster.reset().await;
                }
                Exit::Expelled => self.shared.tell(Event::Expelled { old: record }),
            }
        }
    }

    /// Attempt after attempt, until one succeeds.
    async fn find(&mut self) -> Found {
        let started = self.env.now();
        let give_up_at = self.config.give_up_after.map(|limit| started + limit);
        let mut fruitless = 0;
        // Should the time be over in the midst of an attempt.
        let mut last = Reason::Store("no answer in time".into());
        self.vigil = None;
        loop {
            self.attempt += 1;
            if self.cluster.view().phase == Phase::Stopped {
                return Found::End(End::NodeStopped);
            }
            let attempt = self.try_once(give_up_at, &last).await;
            let reason = match attempt {
                Ok(found) => return found,
                Err(reason) => reason,
            };
            metrics::counter!("coord_bootstrap_fruitless_attempts_total").increment(1);
            let now = self.env.now();
            if give_up_at.is_some_and(|at| now >= at) {
                // Nor is it let in by an answer that comes a moment too late.
                let _ = self.forget_other_cluster(None).await;
                return Found::End(End::GaveUp(reason));
            }
            let random = |max| self.env.random_duration(max);
            let delay = wait(fruitless, self.config.wait_first, self.config.wait_max, random);
            fruitless += 1;
            let until = (now + delay).min(give_up_at.unwrap_or(now + delay));
            last = reason.clone();
            if let Some(deadline) = self.pause(until, reason).await {
                return Found::Leave(deadline);
            }
        }
    }

    /// Look, join, and if there is nothing to join, stand for election.
    async fn try_once(&mut self, give_up_at: Option<Instant>, last: &Reason) -> Result<Found, Reason> {
        let mut leave = self.leave.clone();
        let env = self.env.clone();
        let far = env.now() + Duration::from_secs(86_400 * 365);
        let quiet = tokio::select! {
            biased;
            deadline = asked(&mut leave) => return Ok(Found::Leave(deadline)),
            looked = self.look() => match looked? {
                Ok((record, seed)) => {
                    metrics::counter!("coord_bootstrap_joined_total").increment(1);
                    self.shared.tell(Event::Joined { record, seed });
                    return Ok(Found::Member(record, None));
                }
                Err(quiet) => quiet,
            },
            () = env.sleep_until(give_up_at.unwrap_or(far)) => return Err(last.clone()),
        };
        // Not to be interrupted before it must: it ends by itself, and should leave no record without a cluster behind.
        let (record, held) = self.elect(quiet).await?;
        metrics::counter!("coord_bootstrap_formed_total").increment(1);
        self.shared.tell(Event::Formed { record });
        Ok(Found::Member(record, Some(Box::new(held))))
    }

    /// Waits for the next attempt; returns early when something happens to the leader's entry.
    async fn pause(&mut self, until: Instant, reason: Reason) -> Option<Instant> {
        let attempt = self.attempt;
        self.shared.set(State::Waiting { attempt, reason, until });
        let (mut leave, env, clock) = (self.leave.clone(), self.env.clone(), self.env.clone());
        // Against the herd: everybody who waits has seen the same.
        let jitter = env.random_duration(self.config.wait_first);
        let vigil = &mut self.vigil;
        let disturbed = async {
            match vigil {
                Some(vigil) => vigil.ended(|| clock.now()).await,
                None => std::future::pending().await,
            }
        };
        let over = async {
            tokio::select! {
                biased;
                () = disturbed => env.sleep(jitter).await,
                () = env.sleep_until(until) => {}
            }
        };
        tokio::select! {
            biased;
            deadline = asked(&mut leave) => Some(deadline),
            () = over => None,
        }
    }

    /// Somebody was asked something by the store and it failed: told once.
    pub(crate) fn failed(&mut self, error: &Error) -> Reason {
        metrics::counter!("coord_bootstrap_store_errors_total").increment(1);
        if !std::mem::replace(&mut self.store_failed, true) {
            let error = error.to_string();
            self.shared.tell(Event::StoreFailed { error });
        }
        Reason::Store(error.to_string())
    }

    pub(crate) fn answered(&mut self) {
        if std::mem::take(&mut self.store_failed) {
            self.shared.tell(Event::StoreBack);
        }
    }

    /// Lets something be given back in the background.
    pub(crate) fn retire(&mut self, task: Task) {
        self.retiring.retain(|task| !task.is_finished());
        if self.retiring.len() >= MAX_RETIRING {
            // The oldest: what it holds ends by its ttl.
            drop(self.retiring.remove(0));
        }
        self.retiring.push(task);
    }

    /// Waits for what is being given back.
    pub(crate) async fn retired(&mut self) {
        for task in std::mem::take(&mut self.retiring) {
            task.join().await;
        }
    }
}

/// Resolves when the node is asked to leave: by when it is to have left.
pub(crate) async fn asked(leave: &mut watch::Receiver<Option<Instant>>) -> Instant {
    loop {
        if let Some(deadline) = *leave.borrow_and_update() {
            return deadline;
        }
        if leave.changed().await.is_err() {
            // The handle is gone, and this task will be in a moment.
            std::future::pending::<()>().await;
        }
    }
}

/// Resolves when the node was asked to leave and the deadline is over; it may be asked again with an earlier one.
pub(crate) async fn overdue(mut leave: watch::Receiver<Option<Instant>>, env: &Env) {
    loop {
        let deadline = asked(&mut leave).await;
        tokio::select! {
            biased;
            () = env.sleep_until(deadline) => return,
            Ok(()) = leave.changed() => {}
        }
    }
}
