//! The public conformance suite: what every driver of `coord-api` owes.
//!
//! Each promise of the contract (see [`Coordinator`](coord_api::Coordinator)) is one named [`Behaviour`]. The list is
//! the same for every driver: limits and slacks come from its [`Capabilities`](coord_api::Capabilities), promises
//! cannot be declared away, and nothing is skipped.
//!
//! The author of a driver says how to open a client, and has one test per promise:
//!
//! ```
//! use std::sync::Arc;
//! use coord_api::{Coordinator, Result};
//! use coord_conformance::Opener;
//!
//! struct MyStore;
//!
//! #[async_trait::async_trait]
//! impl Opener for MyStore {
//!     async fn open(&self) -> Result<Arc<dyn Coordinator>> {
//!         unimplemented!("each call: a fresh client of the same store")
//!     }
//! }
//!
//! # #[cfg(any())]
//! coord_conformance::conformance_tests!(MyStore);
//! ```
//!
//! Where a server takes long to start, [`check_all`] goes through the list in one test, many behaviours at a time. Outside
//! of tests, [`run_all`] goes through it and reports. A client whose store cannot be reached is for
//! [`bad_input_is_refused_unsent`].
//!
//! Every behaviour works below a key of its own, `/conformance-<nonce>`, which is deleted afterwards by a further
//! client; nothing else in the store is touched.

#[macro_use]
mod failure;
#[macro_use]
mod list;
mod cut;
mod groups;
mod lease;
mod macros;
mod run;
mod scratch;
mod unsent;
mod view;

pub use failure::Failure;
pub use list::BEHAVIOURS;
#[doc(hidden)]
pub use run::assert_kept;
pub use run::{Behaviour, DEADLINE, Outcome, check_all, run, run_all};
pub use scratch::{Opener, Scratch};
pub use unsent::bad_input_is_refused_unsent;
