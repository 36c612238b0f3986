use bytes::Bytes;

/// How far a job has come, and who may say so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The highest token that has claimed it; 0 before the first. Writes with an older one are refused.
    pub token: u64,
    /// The token of the leader that wrote the progress; 0 if nobody has.
    pub writer: u64,
    /// How far it has come.
    pub progress: Progress,
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Progress {
    /// Nothing has been done, or all of it was cleared.
    #[default]
    Start,
    /// What was done last has led here.
    Next {
        /// The step to be run next.
        step: String,
        /// The state that it starts from.
        state: Bytes,
    },
    /// Everything was done.
    Done,
}

// === impl Progress ===

impl Progress {
    /// The step to be run next, unless it is the first, or none.
    pub fn step(&self) -> Option<&str> {
        match self {
            Progress::Next { step, .. } => Some(step),
            _ => None,
        }
    }

    /// The state that the next step starts from; empty at the start and in the end.
    pub fn state(&self) -> Bytes {
        match self {
            Progress::Next { state, .. } => state.clone(),
            _ => Bytes::new(),
        }
    }

    /// Whether everything was done.
    pub fn is_done(&self) -> bool {
        *self == Progress::Done
    }
}
