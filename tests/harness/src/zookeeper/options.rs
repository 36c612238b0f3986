//! How to start ZooKeeper.

use crate::certs::Tls;
use std::time::Duration;

/// How to start a [`ZkEnsemble`](super::ZkEnsemble).
#[derive(Debug, Clone)]
pub struct ZkOptions {
    /// One or three servers; default one.
    pub nodes: usize,
    /// Sessions last between 2 and 20 ticks; default 200 ms.
    pub tick: Duration,
    /// Connections allowed per client address; default 0, which is no limit.
    pub max_client_cnxns: u32,
    /// Lets [`isolate`](super::ZkEnsemble::isolate) cut a server off from the others; default false.
    pub partitions: bool,
    /// Default off. With TLS, clients use the secure port; a plain one stays for four-letter words.
    pub tls: Tls,
    /// More lines for the configuration file; they win over those that the harness writes.
    pub config: Vec<String>,
    /// Java system properties, for example `("jute.maxbuffer", "2000000")`.
    pub properties: Vec<(String, String)>,
    /// More environment variables.
    pub env: Vec<(String, String)>,
}

impl Default for ZkOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            tick: Duration::from_millis(200),
            max_client_cnxns: 0,
            partitions: false,
            tls: Tls::Off,
            config: Vec::new(),
            properties: Vec::new(),
            env: Vec::new(),
        }
    }
}
