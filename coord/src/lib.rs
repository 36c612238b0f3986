//! Coordination over etcd, ZooKeeper or memory, picked by a URL: elections, a registry, leases, fencing tokens.
//!
//! This crate is all that most users need: it re-exports `coord-api` (the contract and the recipes) and knows the
//! drivers.
//!
//! ```
//! use coordkit::prelude::*;
//!
//! # #[cfg(feature = "memory")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> coordkit::Result<()> {
//! let coordinator = connect("mem://example")?; // or etcd://localhost:2379/app, zk://localhost:2181/app
//!
//! let session = Session::open(coordinator.clone(), SessionConfig::default())?;
//! let election = Election::new(&session, ElectionConfig::new("/jobs/nightly".parse().expect("a key"), "worker-1"));
//! let leadership = election.campaign().await?;
//! println!("leading, with fencing token {}", leadership.token());
//!
//! leadership.resign().await?;
//! coordinator.close().await
//! # }
//! # #[cfg(not(feature = "memory"))] fn main() {}
//! ```
//!
//! | to | look at |
//! | --- | --- |
//! | connect | [`connect`] |
//! | say more than a URL can (TLS, users, deadlines) | [`Config`] |
//! | read it from a file, the environment and flags | [`Config::load`], [`Sources`] |
//! | elect, register, keep a lease alive | [`Election`], [`Registry`], [`Session`] |
//! | run a job on one of n hot copies, and continue it on the next | [`Singleton`] |
//! | read the contract | [`Coordinator`] |
//!
//! Drivers are cargo features: `etcd`, `zookeeper`, `memory`, all on by default.

mod config;
mod connect;
mod secret;
#[cfg(feature = "memory")]
mod shared_memory;
mod url;

pub use coord_api::*;
#[cfg(feature = "etcd")]
pub use coord_etcd as etcd;
#[cfg(feature = "memory")]
pub use coord_mem as memory;
#[cfg(feature = "zookeeper")]
pub use coord_zk as zookeeper;

pub use config::{Config, Override, Setting, Sources, TlsFiles, ZooKeeperSettings, parse_duration};
pub use connect::{IntoConfig, connect};
pub use secret::Secret;
pub use url::{Scheme, StoreUrl};

/// What most programs need, in one `use`.
pub mod prelude {
    pub use crate::{
        Config, Coordinator, CoordinatorExt, Directory, Election, ElectionConfig, ElectionEvent, Expect, Key,
        Leadership, Observer, Registration, Registry, RegistryConfig, Session, SessionConfig, Singleton,
        SingletonConfig, Step, Steps, connect,
    };
}

/// A configuration that cannot work, and why.
fn invalid(what: impl Into<String>) -> Error {
    Error::definite(Operation::Open, None, ErrorKind::InvalidConfig(what.into()))
}
