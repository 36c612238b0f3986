//! Join a running cluster, or be elected its first seed.
//!
//! Nodes that start know nothing but a prefix in a store. [`Bootstrap`] looks whether a cluster is on record there; if so
//! it asks the advertised seeds in turn to be let in, each with a deadline; if not, it stands for election, and who wins
//! forms the cluster. In the cluster, the first reachable member keeps the seeds in the store equal to the truth; all the
//! others write nothing. The cluster itself does not need the store: when that is away, only nobody can join.
//!
//! | at the store | what |
//! | --- | --- |
//! | `<prefix>/leader` | who keeps the seeds, or is forming the cluster; ends by its ttl |
//! | `<prefix>/cluster` | the [`Record`]: which cluster, which generation |
//! | `<prefix>/seeds/…` | whom newcomers ask |
//!
//! | to | look at |
//! | --- | --- |
//! | start a node | [`Bootstrap`], [`Config`] |
//! | know where it is | [`State`], [`Event`] |
//! | use another membership protocol than `coord-cluster` | [`Cluster`] |
//!
//! `docs/bootstrap.md` says what is guaranteed, what is not, and what to do when a rival manager is reported.

mod cluster;
mod config;
mod duties;
mod follow;
mod gossip;
mod handle;
mod look;
mod member;
mod office;
mod record;
mod run;
mod seed;
mod state;
mod unreachable;
mod vigil;

pub use cluster::{Cluster, NodeGone, NotLetIn};
pub use config::{Config, Reform};
pub use handle::{Bootstrap, NotJoined};
pub use record::Record;
pub use state::{End, Event, Reason, State};
