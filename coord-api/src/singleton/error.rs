use crate::{Checkpoint, Error, ErrorKind, Key, Progress};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A newer leader has claimed it.
    #[error(
        "refused: token {token} is older than {newer}, which has claimed the checkpoint: a newer leader runs the job, stop"
    )]
    Superseded {
        /// The token of who asked.
        token: u64,
        /// The token that has claimed it.
        newer: u64,
    },
    /// No leader can have this token.
    #[error(
        "refused: the store cannot have issued token {token} yet (it has counted to {counted}); use the token of the \
         leadership (COORD_TOKEN)"
    )]
    NotIssued {
        /// The token of who asked.
        token: u64,
        /// How far the store has counted.
        counted: u64,
    },
    /// The run is marked as done, and nothing can be saved on top of that.
    #[error("refused: the run is done, as leader {writer} has marked; clear the checkpoint to run it again")]
    Done {
        /// The token of who marked it.
        writer: u64,
    },
    /// What lies there was not written by us.
    #[error("{key} holds no checkpoint ({problem}); look at it, and delete it if it is of no use")]
    Unreadable {
        /// Where.
        key: Key,
        /// What is wrong with it.
        problem: String,
    },
    /// The step has no name, or one that is too long.
    #[error("a step's name has 1 to 255 bytes, this one has {length}")]
    InvalidStep {
        /// Its length in bytes.
        length: usize,
    },
    /// The coordinator failed.
    #[error(transparent)]
    Coordinator(#[from] Error),
    /// A store of another kind failed.
    #[error("the checkpoint store failed: {source}")]
    Store {
        /// Why.
        source: Source,
        /// Whether the same call may work later.
        transient: bool,
    },
}

/// Why a [`Singleton`](crate::Singleton) ended without having done its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SingletonError {
    /// A step failed. The checkpoint before it stands: who runs next begins with this step.
    #[error("step {step} failed: {source}")]
    Step {
        /// Which.
        step: String,
        /// What it said.
        source: Source,
    },
    /// The checkpoint names a step that this program does not have.
    #[error(
        "the checkpoint is at step {step:?}, and this program knows only {known:?}: run the version that wrote it, or clear it"
    )]
    UnknownStep {
        /// What the checkpoint says.
        step: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Two steps have the same name, or there is none.
    #[error("{0}")]
    InvalidSteps(String),
    /// The checkpoint was refused or could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Contending is of no use any more: the election or session was closed, or its configuration cannot work.
    #[error(transparent)]
    Election(#[from] Error),
}

// === impl CheckpointError ===

impl CheckpointError {
    /// Whether the same call may work later: the store is out of reach, or has no room.
    pub fn is_transient(&self) -> bool {
        match self {
            CheckpointError::Coordinator(error) => {
                let no_room = matches!(error.kind(), ErrorKind::StoreFull(_) | ErrorKind::LimitReached(_));
                error.is_transient() || !error.is_definite() || no_room
            }
            CheckpointError::Store { transient, .. } => *transient,
            _ => false,
        }
    }
}

// === impl Checkpoint ===

impl Checkpoint {
    /// The rule of fencing, for every [`CheckpointStore`](crate::CheckpointStore): whoever is older than the one that has
    /// claimed is refused.
    pub fn may_write(&self, token: u64) -> Result<(), CheckpointError> {
        match token {
            0 => Err(CheckpointError::NotIssued {
                token,
                counted: self.token,
            }),
            _ if token < self.token => Err(CheckpointError::Superseded {
                token,
                newer: self.token,
            }),
            _ => Ok(()),
        }
    }

    /// The same for a certain write: a run that is done is not written over, only cleared.
    pub(super) fn may_save(&self, progress: &Progress) -> Result<(), CheckpointError> {
        match progress {
            Progress::Next { step, .. } if !(1..=255).contains(&step.len()) => {
                Err(CheckpointError::InvalidStep { length: step.len() })
            }
            Progress::Next { .. } if self.progress.is_done() => Err(CheckpointError::Done { writer: self.writer }),
            _ => Ok(()),
        }
    }
}
