use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;

use tracing::{error, warn};

use super::pace::Pace;
use super::{Election, ElectionEvent, Term};
use crate::{Error, ErrorKind, Result};

impl Election {
    /// Does `work` whenever this candidate leads, and contends again afterwards, for ever unless the work says
    /// [`Break`](ControlFlow::Break).
    ///
    /// The work gets a [`Term`]: the token to fence its writes with, and [`stopped`](Term::stopped) to await beside
    /// whatever it does. It is told to stop at `valid_until − stop_within − margin`, or as soon as leadership is lost;
    /// a renewal that comes later does not undo that. Only when the work has returned is the entry released. Work that
    /// takes longer than [`stop_within`](crate::ElectionConfig::stop_within) to stop is reported: an
    /// [event](ElectionEvent::Overran) and an error in the log.
    ///
    /// Returns what the work broke with, or an error if contending is of no use any more: the election or session was
    /// closed, or the configuration cannot work. Other refusals of the store are reported and tried again. Dropping
    /// the future drops the work, then releases the entry.
    pub async fn run_while_leader<T, W, F>(&self, mut work: W) -> Result<T>
    where
        W: FnMut(Term) -> F,
        F: Future<Output = ControlFlow<T>>,
    {
        let _busy = self.shared.busy();
        let mut pace = Pace::new();
        loop {
            let leadership = match self.campaign().await {
                Ok(leadership) => leadership,
                Err(failed) => {
                    self.failed(&failed);
                    if is_final(&failed) {
                        return Err(failed);
                    }
                    pace.wait(self.env()).await;
                    continue;
                }
            };
            pace = Pace::new();
            let term = leadership.term();
            let flow = self.supervise(&term, work(term.clone())).await;
            // Only now: the work has stopped. After a loss there is nothing to wait for.
            if leadership.is_valid() {
                if let Err(failed) = leadership.resign().await {
                    warn!(election = %self.shared.config.key, "release: {failed}");
                }
            } else {
                drop(leadership);
            }
            if let ControlFlow::Break(result) = flow {
                return Ok(result);
            }
        }
    }

    /// Waits for the work, and reports it if it does not stop in time.
    async fn supervise<O>(&self, term: &Term, work: impl Future<Output = O>) -> O {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            output = &mut work => return output,
            () = term.stopped() => {}
        }
        let (config, env) = (&self.shared.config, self.env());
        let overdue = env.now() + config.stop_within;
        tokio::select! {
            biased;
            output = &mut work => return output,
            () = env.sleep_until(overdue) => {}
        }
        let (token, stop_within) = (term.token(), config.stop_within);
        error!(election = %config.key, name = %config.name, token, "work was told to stop {stop_within:?} ago and goes on");
        self.shared.tell(ElectionEvent::Overran { token, stop_within });
        work.await
    }

    fn failed(&self, failed: &Error) {
        warn!(election = %self.shared.config.key, name = %self.shared.config.name, "campaign: {failed}");
        self.shared.tell(ElectionEvent::Failed(failed.to_string().into()));
    }
}

/// Whether trying again is of no use.
fn is_final(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Closed
            | ErrorKind::InvalidConfig(_)
            | ErrorKind::InvalidKey(_)
            | ErrorKind::ValueTooLarge { .. }
            | ErrorKind::ForeignLease(_)
    )
}
