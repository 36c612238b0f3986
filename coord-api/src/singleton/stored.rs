use std::sync::Arc;

use async_trait::async_trait;
use tracing::debug;

use super::record;
use crate::election::Pace;
use crate::{
    Checkpoint, CheckpointError, CheckpointStore, Coordinator, Create, CreateMode, Error, ErrorKind, Expect, JobKeys,
    Progress, Result,
};

/// The checkpoint as an entry of the coordinator: one line of JSON (`token`, `writer`, `step`, `done`), then the state.
///
/// Every write is conditional on the version that was read, so that no older leader's write can slip in behind a newer
/// one's claim. The entry is never deleted: it holds the token. Each call ends by the coordinator's
/// [call deadline](crate::Capabilities::call_deadline), and settles for itself what became of a write whose answer was
/// lost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use std::sync::Arc;
/// use coord_api::{Coordinator, CoordinatorCheckpoints, CheckpointStore, JobKeys, Key, Progress};
///
/// async fn resume(coordinator: Arc<dyn Coordinator>, token: u64) -> Result<(), Box<dyn std::error::Error>> {
///     let keys = JobKeys::new(&Key::new("/jobs/nightly")?, None)?;
///     let checkpoints = CoordinatorCheckpoints::new(coordinator, keys);
///     let left = checkpoints.claim(token).await?.progress;
///     println!("continue with {:?}", left.step());
///     let next = Progress::Next { step: "publish".into(), state: "42 files".into() };
///     Ok(checkpoints.save(token, next).await?)
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CoordinatorCheckpoints {
    coordinator: Arc<dyn Coordinator>,
    keys: JobKeys,
}

// === impl CoordinatorCheckpoints ===

impl CoordinatorCheckpoints {
    /// The checkpoint of this job, or of one run of it.
    pub fn new(coordinator: Arc<dyn Coordinator>, keys: JobKeys) -> CoordinatorCheckpoints {
        CoordinatorCheckpoints { coordinator, keys }
    }

    /// Ends by the call deadline, whatever is tried again inside.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, CheckpointError>>) -> Result<T, CheckpointError> {
        let deadline = self.coordinator.capabilities().call_deadline;
        let env = self.coordinator.env();
        match env.timeout_at(env.now() + deadline, work).await {
            Some(result) => result,
            None => {
                let late = ErrorKind::DeadlineExceeded(deadline);
                Err(Error::unknown(crate::Operation::Update, Some(&self.keys.checkpoint), late).into())
            }
        }
    }

    /// Claims, and writes if there is something to write.
    async fn write(&self, token: u64, progress: Option<Progress>) -> Result<Checkpoint, CheckpointError> {
        let key = &self.keys.checkpoint;
        let mut pace = Pace::new();
        let mut create: Option<Create> = None;
        let mut issued = false;
        loop {
            let found = match self.coordinator.get_latest(key).await {
                Err(error) if error.is_transient() => {
                    self.pause(&mut pace, &error).await;
                    continue;
                }
                found => found?,
            };
            let now = found.as_ref().map(record::read).transpose()?.unwrap_or_default();
            now.may_write(token)?;
            if token > now.token && !issued {
                self.check_issued(token).await?;
                issued = true;
            }
            let wanted = match &progress {
                None => Checkpoint { token, ..now.clone() },
                Some(progress) => {
                    now.may_save(progress)?;
                    Checkpoint {
                        token,
                        writer: token,
                        progress: progress.clone(),
                    }
                }
            };
            if found.is_some() && wanted == now {
                // Also an earlier attempt of ours whose answer was lost.
                return Ok(now);
            }
            let value = record::write(&wanted);
            let written = match &found {
                Some(entry) => {
                    let expected = Expect::Version(entry.version);
                    self.coordinator.update(key, value, expected).await.map(|_| ())
                }
                // One attempt, sent again as it is. A copy that arrives late finds the entry there: it is never deleted.
                None => {
                    let create = create.get_or_insert_with(|| {
                        Create::new(self.coordinator.env(), key.clone(), value, CreateMode::Persistent)
                    });
                    self.coordinator.create(create).await.map(|_| ())
                }
            };
            match written {
                Ok(()) => return Ok(wanted),
                Err(error) => match error.kind() {
                    // Somebody else was faster: look at what it has become.
                    ErrorKind::VersionMismatch(_) | ErrorKind::AlreadyExists(_) | ErrorKind::NotFound => {}
                    _ if error.is_definite() => return Err(error.into()),
                    // The same write again is conditional on the same version: it takes effect once at most.
                    _ => self.pause(&mut pace, &error).await,
                },
            }
        }
    }

    /// Refuses a token to which the store has not counted yet: an entry that is made now is younger than every leader's
    /// that there can be.
    async fn check_issued(&self, token: u64) -> Result<(), CheckpointError> {
        let key = &self.keys.clock;
        let mut pace = Pace::new();
        let mut create: Option<Create> = None;
        loop {
            let made = match &create {
                // Sent, and unanswered: the same one again.
                Some(create) => self.coordinator.create(create).await,
                None => match self.coordinator.delete(key, Expect::Any).await {
                    Err(error) if !error.is_not_found() => Err(error),
                    _ => {
                        let env = self.coordinator.env();
                        let create = create.insert(Create::new(env, key.clone(), "", CreateMode::Persistent));
                        self.coordinator.create(create).await
                    }
                },
            };
            let counted = match made {
                Ok(entry) => entry.created,
                // Somebody else's, made after our deletion: it does as well.
                Err(error) => match error.holder() {
                    Some(holder) => holder.created,
                    None if error.is_definite() && !error.is_transient() => return Err(error.into()),
                    None => {
                        self.pause(&mut pace, &error).await;
                        continue;
                    }
                },
            };
            return match token < counted {
                true => Ok(()),
                false => Err(CheckpointError::NotIssued { token, counted }),
            };
        }
    }

    async fn pause(&self, pace: &mut Pace, error: &Error) {
        debug!(key = %self.keys.checkpoint, "{error}");
        pace.wait(self.coordinator.env()).await;
    }
}

#[async_trait]
impl CheckpointStore for CoordinatorCheckpoints {
    async fn load(&self) -> Result<Checkpoint, CheckpointError> {
        let found = self.coordinator.get_latest(&self.keys.checkpoint).await?;
        Ok(found.as_ref().map(record::read).transpose()?.unwrap_or_default())
    }

    async fn claim(&self, token: u64) -> Result<Checkpoint, CheckpointError> {
        self.in_time(self.write(token, None)).await
    }

    async fn save(&self, token: u64, progress: Progress) -> Result<(), CheckpointError> {
        self.in_time(self.write(token, Some(progress))).await.map(|_| ())
    }
}
