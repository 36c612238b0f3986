use std::time::Duration;

use coord_api::Capabilities;

use crate::ZkConfig;

/// More is absurd for a session: ZooKeeper itself grants at most 20 ticks.
const MAX_TTL: Duration = Duration::from_secs(3600);
/// What closing a session may take on a busy machine, on top of the server's own rounding.
const CLOSING: Duration = Duration::from_millis(500);

pub(crate) fn capabilities(config: &ZkConfig) -> Capabilities {
    Capabilities {
        driver: "zookeeper",
        max_ttl: MAX_TTL,
        // The server rounds expiry up to whole ticks, and looks once per tick.
        expiry_slack: config.tick * 3 / 2 + CLOSING,
        // The proof of a renewal counts from the one before.
        renewals_per_ttl: 4,
        max_value: Capabilities::MAX_VALUE,
        call_deadline: config.call_deadline,
    }
}
