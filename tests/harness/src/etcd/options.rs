//! How to start etcd.

use crate::{
    certs::{Certs, Tls},
    ports::ReservedPort,
};
use std::{
    ffi::{OsStr, OsString},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

/// How to start an [`EtcdCluster`](super::EtcdCluster).
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// One or three members; default one.
    pub nodes: usize,
    /// Default 50 ms.
    pub heartbeat: Duration,
    /// Default 500 ms. The shortest lease is one and a half times this, rounded up to whole seconds.
    pub election_timeout: Duration,
    /// The size of the store at which etcd refuses writes; default etcd's own.
    pub quota_bytes: Option<u64>,
    /// Lets [`isolate`](super::EtcdCluster::isolate) cut a member off from the others; default false.
    pub partitions: bool,
    /// Default off. The links between members are always plain.
    pub tls: Tls,
    /// More arguments for `etcd`.
    pub args: Vec<String>,
    /// More environment variables for `etcd`.
    pub env: Vec<(String, String)>,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            heartbeat: Duration::from_millis(50),
            election_timeout: Duration::from_millis(500),
            quota_bytes: None,
            partitions: false,
            tls: Tls::Off,
            args: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// The command line of member `i`.
pub(super) fn arguments(
    options: &EtcdOptions,
    certs: Option<&Certs>,
    dir: &Path,
    i: usize,
    members: &str,
    advertised: SocketAddr,
    [client, peer, monitor]: &[ReservedPort; 3],
) -> Vec<OsString> {
    let scheme = if certs.is_some() { "https" } else { "http" };
    let client = format!("{scheme}://{}", client.addr());
    let peer = format!("http://{}", peer.addr());
    let mut args: Vec<OsString> = Vec::new();
    let mut set = |flag: &str, value: &dyn AsRef<OsStr>| {
        args.push(flag.into());
        args.push(value.as_ref().into());
    };
    set("--name", &format!("m{i}"));
    set("--data-dir", &dir.join(format!("m{i}")));
    set("--listen-client-urls", &client);
    set("--advertise-client-urls", &client);
    set("--listen-peer-urls", &peer);
    set("--initial-advertise-peer-urls", &format!("http://{advertised}"));
    set("--initial-cluster", &members);
    // Members of another private cluster that got one of our old ports must not be mistaken for ours.
    set("--initial-cluster-token", &dir);
    set("--listen-metrics-urls", &format!("http://{}", monitor.addr()));
    set("--heartbeat-interval", &options.heartbeat.as_millis().to_string());
    set("--election-timeout", &options.election_timeout.as_millis().to_string());
    if let Some(bytes) = options.quota_bytes {
        set("--quota-backend-bytes", &bytes.to_string());
    }
    if let Some(certs) = certs {
        set("--cert-file", &certs.server.cert);
        set("--key-file", &certs.server.key);
        if options.tls == Tls::Mutual {
            set("--trusted-ca-file", &certs.ca);
            args.push("--client-cert-auth".into());
        }
    }
    args.extend(options.args.iter().map(OsString::from));
    args
}
