//! The coordination contract and the recipes written once against it.
//!
//! [`Coordinator`] is the contract: leases, create-if-absent, ephemeral sequential entries, conditional writes and
//! watches. Its page holds every promise that a driver makes. Drivers live in crates of their own (`coord-mem`,
//! `coord-etcd`, `coord-zk`); the recipes know only the trait, so they run on any of them.
//!
//! | to | look at |
//! | --- | --- |
//! | read the contract | [`Coordinator`] |
//! | name things | [`Key`], [`Entry`], [`Version`], [`LeaseId`] |
//! | create, and create again after an unknown outcome | [`Create`], [`CreateMode`], [`Coordinator::abandon`] |
//! | follow changes | [`Watch`], [`WatchEvent`] |
//! | know whether a failed call may have happened | [`Error::class`], [`Class`] |
//! | keep a lease alive, whatever the store does | [`Session`] |
//! | register services and find them | [`Registry`], [`Directory`] |
//! | elect a leader | [`Election`], [`Leadership`], [`Observer`] |
//! | run a job on one of n copies, with checkpoints | [`Singleton`], [`CheckpointStore`] |
//! | drive time in a test | [`Env`] |
//! | write a driver | [`driver`] |

mod capabilities;
mod coordinator;
mod create;
pub mod driver;
mod election;
mod entry;
mod env;
mod error;
mod expect;
mod ext;
mod key;
mod lease;
mod prefixed;
mod registry;
mod session;
mod singleton;
mod watch;

pub use bytes::Bytes;
pub use capabilities::Capabilities;
pub use coordinator::{Coordinator, Standing};
pub use create::{Create, CreateMode, Nonce};
pub use election::{
    Election, ElectionConfig, ElectionEvent, ElectionEvents, Leader, Leadership, Observation, Observer, Recipe, Term,
    Unelected,
};
pub use entry::{Entry, ParseVersionError, Version};
pub use env::{Env, Instant, Task};
pub use error::{Class, Error, ErrorKind, Operation, Result};
pub use expect::Expect;
pub use ext::CoordinatorExt;
pub use key::{InvalidKey, Key};
pub use lease::{Grant, LeaseId, margin};
pub use prefixed::Prefixed;
pub use registry::{Directory, Instance, Instances, Registration, Registry, RegistryConfig, Status, View};
pub use session::{
    Backoff, Closure, Health, Lease, LossReason, Session, SessionClosed, SessionConfig, SessionState, SessionWatch,
    Strategy,
};
pub use singleton::{
    Checkpoint, CheckpointError, CheckpointStore, CoordinatorCheckpoints, JobKeys, Outcome, Progress, Singleton,
    SingletonConfig, SingletonError, Step, Steps,
};
pub use watch::{Target, Watch, WatchEvent};
