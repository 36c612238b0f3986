//! Gossip membership after the Akka Cluster Specification.
//!
//! - [`ClusterNode`] is a running node on TCP: join, leave, down, the latest [`ClusterView`] and a stream of [`Event`]s.
//! - [`Core`] is the protocol alone, a pure state machine for whoever brings a transport.
//! - [`sim`] runs hundreds of cores in one process on virtual time.
//!
//! `docs/cluster.md` has the figures, the wire format, and where each paragraph of the specification went.
//!
//! ```
//! use coord_cluster::{ClusterNode, Settings, Start};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut settings = Settings::new("127.0.0.1:0".parse()?);
//! settings.start = Start::Form;
//! let first = ClusterNode::start(settings).await?;
//!
//! let second = ClusterNode::start(Settings::new("127.0.0.1:0".parse()?)).await?;
//! second.join(vec![first.self_node().address], Duration::from_secs(10)).await?;
//! second.watch().wait_for(|view| view.converged && view.up().count() == 2).await?;
//! assert_eq!(second.view().cluster, first.view().cluster);
//! # Ok(())
//! # }
//! ```

mod address;
mod cluster_id;
mod config;
mod core;
mod detector;
mod digest;
mod downing;
mod event;
mod exit_gate;
mod lww_map;
mod member;
mod message;
mod node_id;
mod partition;
pub mod sim;
mod state;
mod transport;
mod vector_clock;

pub use address::{Address, InvalidAddress};
pub use cluster_id::ClusterId;
pub use config::Config;
pub use core::{Core, DropReason, Input, MAX_META_BYTES, MAX_META_ENTRIES, MAX_META_TOTAL, MetaError, Output};
pub use detector::{DetectorConfig, PhiAccrual};
pub use digest::Digest;
pub use downing::{Downing, DowningAfterStable, DowningOff};
pub use event::{ClusterView, Event, MemberView, Phase};
pub use exit_gate::{ExitGate, NothingPending};
pub use lww_map::LwwMap;
pub use member::{Member, MemberState};
pub use message::{Envelope, Message, Overview, Refusal, SeenBy, Strength};
pub use node_id::{Incarnation, NodeId, NodeKey};
pub use partition::{PartitionChange, PartitionChangeStatus, PartitionPath};
pub use state::{CLOCK_ENTRIES, GossipState, ReachabilityRow, SeenSet, Snapshot, Successor};
pub use transport::{
    ClusterNode, Departed, FrameError, FrameReader, JoinError, MAX_FRAME_BYTES, NodeStopped, Secret, Settings, Start,
    Stats, encode_bodies,
};
pub use vector_clock::VectorClock;
