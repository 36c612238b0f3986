//! Helpers for tests with real sockets.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::time::Duration;

use coord_cluster::{Config, DetectorConfig, Settings, Start};

/// Far beyond what anything here takes, so that a slow machine does not fail a test.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A protocol that is quick enough for tests and patient enough for a busy machine.
pub fn quick_config() -> Config {
    let detector = DetectorConfig {
        acceptable_pause: Duration::from_millis(1500),
        first_interval: Duration::from_millis(200),
        ..DetectorConfig::default()
    };
    Config {
        gossip_interval: Duration::from_millis(200),
        fast_interval: Duration::from_millis(50),
        heartbeat_interval: Duration::from_millis(200),
        join_timeout: Duration::from_secs(1),
        detector,
        ..Config::default()
    }
}

pub fn quick_settings(start: Start) -> Settings {
    let mut settings = Settings::new("127.0.0.1:0".parse().unwrap());
    settings.config = quick_config();
    settings.start = start;
    settings
}

/// Polls until there is an answer; the caller sets the deadline.
pub async fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
