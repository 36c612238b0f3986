//! ZooKeeper driver of [coord-api](coord_api): the same contract as every other driver, on ZooKeeper 3.6 or later.
//!
//! ```no_run
//! # async fn example() -> coord_api::Result<()> {
//! use coord_api::{CoordinatorExt, Env, Key};
//! use coord_zk::{ZkConfig, ZkCoordinator};
//!
//! let config = ZkConfig::new("zk1:2181,zk2:2181,zk3:2181/my-app");
//! let coordinator = ZkCoordinator::open(config, Env::system())?;
//! coordinator.create_persistent(&Key::new("/greeting").unwrap(), "hello").await?;
//! # Ok(()) }
//! ```
//!
//! A lease is a ZooKeeper session of its own; reads, persistent writes and watches share one more connection. What the
//! driver does about ZooKeeper's habits is written down in `docs/drivers/zookeeper.md`.

mod call;
mod capabilities;
mod config;
mod conn;
mod coordinator;
mod create;
mod envelope;
mod faults;
mod flight;
mod fresh;
mod guard;
mod inner;
mod known;
mod lease;
mod leases;
mod names;
mod nonces;
mod parents;
mod proof;
mod read;
mod run;
mod session;
mod settle;
mod shared;
mod standing;
mod watch;
mod write;

pub use config::{ZkAuth, ZkConfig, ZkTls};
pub use coordinator::ZkCoordinator;
