use std::time::Duration;

use crate::Key;

/// The settings of a [`Singleton`](crate::Singleton).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingletonConfig {
    /// The job. What it has at the store lies below this key: see [`JobKeys`](crate::JobKeys).
    pub key: Key,
    /// What this copy is called. It need not be unique.
    pub name: String,
    /// Which run of the job this is, if each is to be done once: the copy that finishes it marks it as done, and all
    /// others end without running it. A small entry per run stays at the store. Default: none; every call of
    /// [`run`](crate::Singleton::run) does the job once more.
    pub run: Option<String>,
    /// How long a step needs to stop when told: see [`ElectionConfig::stop_within`](crate::ElectionConfig::stop_within).
    /// Default: 250 ms.
    pub stop_within: Duration,
}

impl SingletonConfig {
    /// The job `key`, of which this copy is called `name`; the rest by default.
    pub fn new(key: Key, name: impl Into<String>) -> SingletonConfig {
        SingletonConfig {
            key,
            name: name.into(),
            run: None,
            stop_within: Duration::from_millis(250),
        }
    }
}
