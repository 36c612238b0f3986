use std::time::Duration;

/// What differs between drivers without touching a promise: limits and slacks, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The driver's name: `memory`, `etcd`, `zookeeper`.
    pub driver: &'static str,
    /// The longest ttl that may be asked for; more is refused as absurd. What the store grants may be less.
    pub max_ttl: Duration,
    /// A lease that nobody renews ends at most this much after its ttl, while the store changes no leader.
    pub expiry_slack: Duration,
    /// How often per ttl a lease is to be renewed, so that one lost renewal does no harm: 3, or 4 where the store's
    /// proof counts from the renewal before.
    pub renewals_per_ttl: u32,
    /// The largest value in bytes; more is refused before sending.
    pub max_value: usize,
    /// The deadline of each call when nobody asked for a tighter one.
    pub call_deadline: Duration,
}

impl Capabilities {
    /// The value limit that every driver keeps: 512 KiB.
    pub const MAX_VALUE: usize = 512 * 1024;
}
