mod checkpoint;
mod config;
mod error;
mod job;
mod record;
mod run;
mod steps;
mod store;
mod stored;

use std::fmt;
use std::sync::Arc;

use crate::{Election, ElectionConfig, Error, ErrorKind, Operation, Result, Session};
pub use checkpoint::{Checkpoint, Progress};
pub use config::SingletonConfig;
pub use error::{CheckpointError, SingletonError};
pub use job::JobKeys;
pub use steps::{Step, Steps};
pub use store::CheckpointStore;
pub use stored::CoordinatorCheckpoints;

#[doc = include_str!("singleton.md")]
pub struct Singleton {
    session: Session,
    election: Election,
    checkpoints: Arc<dyn CheckpointStore>,
    config: SingletonConfig,
    once: bool,
}

/// How [`Singleton::run`] has ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This copy has done the job, or the rest of it.
    Done,
    /// Another copy has done this [run](SingletonConfig::run).
    AlreadyDone,
}

// === impl Singleton ===

impl Singleton {
    /// One copy of the job, with its checkpoint in the session's coordinator. Nothing is sent before it
    /// [runs](Singleton::run). Fails if the name of the run cannot be part of a key.
    pub fn new(session: &Session, config: SingletonConfig) -> Result<Singleton> {
        let keys = Singleton::keys(&config)?;
        let checkpoints = CoordinatorCheckpoints::new(session.coordinator().clone(), keys);
        Singleton::with_checkpoints(session, config, Arc::new(checkpoints))
    }

    /// The same, with the checkpoint in a place of your own.
    pub fn with_checkpoints(
        session: &Session,
        config: SingletonConfig,
        checkpoints: Arc<dyn CheckpointStore>,
    ) -> Result<Singleton> {
        let election = ElectionConfig {
            stop_within: config.stop_within,
            ..ElectionConfig::new(Singleton::keys(&config)?.candidates, &config.name)
        };
        Ok(Singleton {
            session: session.clone(),
            election: Election::new(session, election),
            checkpoints,
            once: config.run.is_some(),
            config,
        })
    }

    /// What it was made with.
    pub fn config(&self) -> &SingletonConfig {
        &self.config
    }

    /// The election beneath: who runs the job, and what happens.
    pub fn election(&self) -> &Election {
        &self.election
    }

    fn keys(config: &SingletonConfig) -> Result<JobKeys> {
        JobKeys::new(&config.key, config.run.as_deref())
            .map_err(|invalid| Error::definite(Operation::Create, Some(&config.key), ErrorKind::InvalidKey(invalid)))
    }
}

impl fmt::Debug for Singleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Singleton")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
