use crate::{InvalidKey, Key};

/// Where a job keeps what it has at the store: `coord run` and [`Singleton`](crate::Singleton) agree on it.
///
/// ```
/// use coord_api::{JobKeys, Key};
///
/// let keys = JobKeys::new(&Key::new("/jobs/nightly")?, Some("2026-11-18"))?;
/// assert_eq!(keys.candidates.as_str(), "/jobs/nightly/candidates");
/// assert_eq!(keys.checkpoint.as_str(), "/jobs/nightly/runs/2026-11-18");
/// # Ok::<(), coord_api::InvalidKey>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobKeys {
    /// The election of the copy that runs.
    pub candidates: Key,
    /// The checkpoint: one for the job, or one for each run that is to be done once.
    pub checkpoint: Key,
    /// An entry that is made anew to learn how far the store has counted.
    pub clock: Key,
}

// === impl JobKeys ===

impl JobKeys {
    /// The keys of `job`; of one run of it, if that is to be done once.
    pub fn new(job: &Key, run: Option<&str>) -> Result<JobKeys, InvalidKey> {
        Ok(JobKeys {
            candidates: job.child("candidates")?,
            checkpoint: match run {
                Some(run) => job.child("runs")?.child(run)?,
                None => job.child("checkpoint")?,
            },
            clock: job.child("clock")?,
        })
    }
}
