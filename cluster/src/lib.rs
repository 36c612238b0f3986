//! Gossip membership after the Akka Cluster Specification.
//!
//! [`Core`] is the protocol as a pure state machine; [`sim`] runs hundreds of them on virtual time.

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
pub use core::{Core, DropReason, Input, MAX_META_BYTES, MAX_META_ENTRIES, Output};
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
    ClusterNode, FrameError, FrameReader, JoinError, MAX_FRAME_BYTES, NodeStopped, Secret, Settings, Start, Stats,
    encode_bodies,
};
pub use vector_clock::VectorClock;
