//! The thin layer between [`Core`](crate::Core) and the network.

mod channel;
mod driver;
mod frame;
mod node;
mod secret;
mod settings;
mod stats;

pub use frame::{FrameError, FrameReader, MAX_FRAME_BYTES, encode_bodies};
pub use node::{ClusterNode, Departed, JoinError, NodeStopped};
pub use secret::Secret;
pub use settings::{Settings, Start};
pub use stats::Stats;
