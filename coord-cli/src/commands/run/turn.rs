use std::time::Duration;

use coordkit::{CheckpointError, CheckpointStore, Election, ErrorKind, Leadership, SessionState};
use tracing::{debug, info};

use super::Runner;
use super::margins::Margins;
use super::told::Told;
use crate::exit::Exit;
use crate::guardian::Signals;
use crate::waiting;

/// Between two questions whether the run is done, while the store does not answer.
const PAUSE: Duration = Duration::from_millis(300);

/// A turn, and the time there is to stop.
pub(super) struct Lead {
    pub(super) leadership: Leadership,
    pub(super) margins: Margins,
}

impl Runner {
    /// Waits for our turn; a signal that asks to end or the end of `--wait` ends that, too. `None`: another copy has done
    /// this run.
    pub(super) async fn turn(&self, signals: &mut Signals) -> Result<Option<Lead>, Exit> {
        let env = self.coordinator.env();
        let over = async {
            match self.args.wait {
                Some(wait) => env.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            raw = signals.next_to_end() => Err(Exit::silent(128 + raw)),
            turn = self.campaign() => turn,
            refused = self.refused() => Err(refused),
            () = over => Err(self.in_vain()),
        }
    }

    /// Tells that we wait for the store, if we do. Resolves if it does not accept our credentials: no waiting helps that.
    async fn refused(&self) -> Exit {
        match waiting::for_the_store(&self.coordinator, &self.app.config.store).await {
            Err(error) if matches!(error.kind(), ErrorKind::Unauthenticated(_)) => error.into(),
            _ => std::future::pending().await,
        }
    }

    /// Not acquired in time, or nobody to ask.
    fn in_vain(&self) -> Exit {
        let (job, wait) = (&self.args.job, self.args.wait.unwrap_or_default());
        match self.session.state() {
            SessionState::Connected(_) => Exit::not_acquired(format!(
                "{job}: not our turn within {wait:?}; `coord status {job}` tells who runs it"
            )),
            _ => Exit::unavailable(format!(
                "{job}: the store {} cannot be reached within {wait:?}; check its address and that it is up",
                self.app.config.store
            )),
        }
    }

    /// Whether the run is marked as done, as soon as the store tells.
    async fn is_done(&self) -> Result<bool, Exit> {
        let Some(mark) = &self.mark else {
            return Ok(false);
        };
        loop {
            match mark.load().await {
                Ok(found) => return Ok(found.progress.is_done()),
                Err(error) if error.is_transient() => debug!("is it done? {error}"),
                Err(error) => return Err(checkpoint_exit(error)),
            }
            self.coordinator.env().sleep(PAUSE).await;
        }
    }

    async fn campaign(&self) -> Result<Option<Lead>, Exit> {
        let lease = self
            .session
            .connected()
            .await
            .map_err(|closed| Exit::unavailable(format!("{}: no lease could be had: {closed}", self.args.job)))?;
        if self.is_done().await? {
            return Ok(None);
        }
        // By what was granted, which may be another ttl each time.
        let margins = Margins::new(lease.ttl, self.args.grace).map_err(Exit::usage)?;
        info!(job = %self.args.job, name = %self.name, "waiting for our turn");
        let election = Election::new(&self.session, self.election_config(margins));
        let leadership = election.campaign().await?;
        let Some(mark) = &self.mark else {
            return Ok(Some(Lead { leadership, margins }));
        };
        let term = leadership.term();
        // Each of many copies gets its turn in the end: a look is cheaper than a claim.
        let claimed = async {
            let mut told = Told::default();
            if self.is_done().await? {
                return Ok(true);
            }
            loop {
                match mark.claim(term.token()).await {
                    Ok(found) => return Ok(found.progress.is_done()),
                    Err(error) if error.is_transient() => {
                        told.tell(format!(
                            "{}: it is our turn, but not claimed yet: {error}",
                            self.args.job
                        ));
                    }
                    Err(CheckpointError::Superseded { .. }) if !term.is_valid() => return Ok(false),
                    Err(error) => return Err(checkpoint_exit(error)),
                }
                self.coordinator.env().sleep(PAUSE).await;
            }
        };
        let done = tokio::select! {
            biased;
            // It is told once more when the job is to be started.
            () = term.stopped() => false,
            done = claimed => done?,
        };
        if !done {
            return Ok(Some(Lead { leadership, margins }));
        }
        // The next copy is to learn it, too; what cannot be released goes with the session.
        if let Err(error) = leadership.resign().await {
            debug!("release: {error}");
        }
        Ok(None)
    }
}

/// What a refused checkpoint means for the exit code.
pub(crate) fn checkpoint_exit(error: CheckpointError) -> Exit {
    match error {
        CheckpointError::Superseded { .. } | CheckpointError::NotIssued { .. } | CheckpointError::Done { .. } => {
            Exit::superseded(error)
        }
        CheckpointError::InvalidStep { .. } => Exit::usage(error),
        CheckpointError::Coordinator(error) => error.into(),
        error if error.is_transient() => Exit::unavailable(error),
        error => Exit::failed(error),
    }
}
