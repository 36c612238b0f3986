use std::fmt::Debug;

use async_trait::async_trait;

use crate::{Checkpoint, CheckpointError, Progress};

/// Where a job's checkpoint is kept: by default the [coordinator](crate::CoordinatorCheckpoints), or a place of yours.
///
/// The rule that every store keeps, atomically: it remembers the highest token that has claimed or written, and refuses
/// ([`Superseded`](CheckpointError::Superseded)) whatever comes with an older one. Clearing, which is a
/// [`save`](CheckpointStore::save) of [`Progress::Start`], keeps the token.
///
/// ```
/// use std::sync::Mutex;
/// use async_trait::async_trait;
/// use coord_api::{Checkpoint, CheckpointError, CheckpointStore, Progress};
///
/// #[derive(Debug, Default)]
/// struct InProcess(Mutex<Checkpoint>);
///
/// #[async_trait]
/// impl CheckpointStore for InProcess {
///     async fn load(&self) -> Result<Checkpoint, CheckpointError> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///
///     async fn claim(&self, token: u64) -> Result<Checkpoint, CheckpointError> {
///         let mut kept = self.0.lock().unwrap();
///         kept.may_write(token)?;
///         kept.token = token;
///         Ok(kept.clone())
///     }
///
///     async fn save(&self, token: u64, progress: Progress) -> Result<(), CheckpointError> {
///         let mut kept = self.0.lock().unwrap();
///         kept.may_write(token)?;
///         *kept = Checkpoint { token, writer: token, progress };
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait CheckpointStore: Debug + Send + Sync + 'static {
    /// The checkpoint as it is, for whoever wants to know: no older than any write that had finished. It claims
    /// nothing: an older leader may still write after it.
    async fn load(&self) -> Result<Checkpoint, CheckpointError>;

    /// From now on nobody with an older token writes. Gives what the leaders before have left.
    async fn claim(&self, token: u64) -> Result<Checkpoint, CheckpointError>;

    /// Writes how far the job has come. Saving the same again, after an error that left it open whether it was written,
    /// does no harm.
    async fn save(&self, token: u64, progress: Progress) -> Result<(), CheckpointError>;
}
