//! In-memory driver of coord-api: real leases with real expiry, several clients on one store, virtual time, and faults
//! on demand.
//!
//! A [`MemStore`] is the store; each [`MemStore::client`] is a [`Coordinator`](coord_api::Coordinator) of its own, with
//! its own connection, leases and clock. It keeps every promise of the contract, so logic that was tested on it runs
//! on etcd and ZooKeeper as it is. What those stores do on bad days, [`Faults`] does to one client on request: from a
//! script ([`Faults::next`]) or from a seed ([`Faults::seeded`]).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> coord_api::Result<()> {
//! use std::time::Duration;
//! use coord_api::{Coordinator, CoordinatorExt, Env, Key};
//! use coord_mem::MemStore;
//!
//! let store = MemStore::new(&Env::simulated(1));
//! let (alice, bob) = (store.client(), store.client());
//! let key = Key::new("/leader").unwrap();
//!
//! let grant = alice.grant(Duration::from_secs(10)).await?;
//! alice.create_ephemeral(&key, "alice", grant.lease).await?;
//! let refused = bob.create_persistent(&key, "bob").await.unwrap_err();
//! assert_eq!(refused.holder().unwrap().value, "alice");
//!
//! // Nobody renews; virtual time passes in no time; the store ends the lease, and its entry goes with it.
//! bob.env().sleep(Duration::from_secs(10)).await;
//! assert_eq!(bob.get(&key).await?, None);
//! # Ok(()) }
//! ```

mod client;
mod coordinator;
mod faults;
mod options;
mod state;
mod store;
mod timer;

pub use client::MemClient;
pub use faults::{Fault, Faults, GiveUp, Odds};
pub use options::StoreOptions;
pub use store::{MemStore, WeakMemStore};
