use std::time::Duration;

use crate::DetectorConfig;

/// The knobs of a node. Every duration is a default that the figures in `docs/cluster.md` were measured with.
#[derive(Debug, Clone)]
pub struct Config {
    /// How often a node gossips in a quiet cluster.
    pub gossip_interval: Duration,
    /// How often while not everybody who can be reached has seen the latest state.
    pub fast_interval: Duration,
    /// How often a node asks those it watches.
    pub heartbeat_interval: Duration,
    /// When silence becomes suspicion.
    pub detector: DetectorConfig,
    /// How long one contact point has to answer a join.
    pub join_timeout: Duration,
    /// The most members that a cluster lets in.
    pub max_members: usize,
    /// Whether a node that was put down while alive asks its old cluster to be let back in, and in the end forms it
    /// anew. Off for nodes that are told where to go by somebody who knows better, such as `coord-bootstrap`: they
    /// become a new incarnation in no cluster.
    pub rejoin: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gossip_interval: Duration::from_secs(1),
            fast_interval: Duration::from_millis(250),
            heartbeat_interval: Duration::from_secs(1),
            detector: DetectorConfig::default(),
            join_timeout: Duration::from_secs(3),
            max_members: 10_000,
            rejoin: true,
        }
    }
}
