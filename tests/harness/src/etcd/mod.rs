//! Private etcd clusters.

mod gates;
mod members;
mod options;

pub use options::EtcdOptions;

use crate::{
    certs::{Certs, Tls},
    eventually::eventually,
    node::{Launch, Node},
    ports::ReservedPort,
    programs,
    sandbox::Sandbox,
};
use gates::Gates;
use options::arguments;
use std::{net::SocketAddr, path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Command,
    time::timeout,
};

const START_DEADLINE: Duration = Duration::from_secs(60);
const PROBE: Duration = Duration::from_secs(2);

/// A private etcd cluster; gone when dropped.
#[derive(Debug)]
pub struct EtcdCluster {
    nodes: Vec<Node>,
    /// Plain HTTP also with TLS: health and metrics need no certificate.
    monitors: Vec<SocketAddr>,
    options: EtcdOptions,
    certs: Option<Certs>,
    /// Between the members, if they can be cut off from each other.
    gates: Option<Gates>,
    sandbox: Arc<Sandbox>,
}

impl EtcdCluster {
    /// Starts the members and waits until all serve.
    ///
    /// # Panics
    /// When etcd is missing or does not start.
    pub async fn start(options: EtcdOptions) -> Self {
        let program = programs::program("etcd", "etcd-server");
        let sandbox = Arc::new(Sandbox::new());
        let certs = (options.tls != Tls::Off).then(|| Certs::generate(&sandbox.dir().join("certs")));
        // Client, peer and monitoring port of each member.
        let ports: Vec<[ReservedPort; 3]> = (0..options.nodes)
            .map(|_| std::array::from_fn(|_| ReservedPort::new()))
            .collect();
        let monitors = ports.iter().map(|[_, _, monitor]| monitor.addr()).collect();
        let peers: Vec<SocketAddr> = ports.iter().map(|[_, peer, _]| peer.addr()).collect();
        let gates = match options.partitions {
            true => Some(Gates::start(&peers).await),
            false => None,
        };
        let advertised = gates.as_ref().map_or(peers, Gates::addrs);
        let members: Vec<String> = advertised
            .iter()
            .enumerate()
            .map(|(i, peer)| format!("m{i}=http://{peer}"))
            .collect();
        let members = members.join(",");
        let mut nodes = Vec::new();
        for (i, ports) in ports.into_iter().enumerate() {
            let launch = Launch {
                program: program.clone(),
                args: arguments(
                    &options,
                    certs.as_ref(),
                    sandbox.dir(),
                    i,
                    &members,
                    advertised[i],
                    &ports,
                )
                .into(),
                env: options.env.clone(),
                env_strip: "ETCD",
                log: sandbox.dir().join(format!("m{i}.log")),
            };
            let node = Node::start(sandbox.clone(), launch, ports[0].addr(), ports.into());
            if let Some(gates) = &gates {
                gates.belongs_to(i, node.pid());
            }
            nodes.push(node);
        }
        let cluster = Self {
            nodes,
            monitors,
            options,
            certs,
            gates,
            sandbox,
        };
        cluster.wait_ready(START_DEADLINE).await;
        cluster
    }

    /// The members in the order of their names.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Member `i`, from 0.
    pub fn node(&self, i: usize) -> &Node {
        &self.nodes[i]
    }

    /// The client addresses as URLs, `http://…` or with TLS `https://…`.
    pub fn endpoints(&self) -> Vec<String> {
        let scheme = if self.options.tls == Tls::Off { "http" } else { "https" };
        self.nodes
            .iter()
            .map(|node| format!("{scheme}://{}", node.client_addr()))
            .collect()
    }

    /// The certificates, if TLS is on.
    pub fn certs(&self) -> Option<&Certs> {
        self.certs.as_ref()
    }

    /// The folder of data, logs and certificates.
    pub fn dir(&self) -> &Path {
        self.sandbox.dir()
    }

    /// Waits until every member that is neither down nor paused has answered a read through the quorum. A full quota
    /// does not count as unready.
    ///
    /// # Panics
    /// When that takes longer than `deadline`, or when a member ends by itself.
    pub async fn wait_ready(&self, deadline: Duration) {
        for (i, node) in self.nodes.iter().enumerate() {
            eventually(deadline, &format!("etcd member m{i} serves"), async || {
                if let Some(obituary) = node.obituary() {
                    panic!("{obituary}");
                }
                if !node.is_active() {
                    return Ok(());
                }
                match self.http(i, "/health").await {
                    Some(answer) if answer.contains(r#""health":"true""#) => Ok(()),
                    // With an alarm raised etcd calls itself unhealthy; that it has a leader must do then.
                    Some(answer) if answer.contains(r#""health":"false""#) && self.alarmed(i).await => Ok(()),
                    answer => Err(format!("{answer:?}\n{}", node.log_tail())),
                }
            })
            .await;
        }
    }

    /// The index of the leader, if an active member says that it is the one.
    pub async fn leader(&self) -> Option<usize> {
        for i in 0..self.nodes.len() {
            if self.metric(i, "etcd_server_is_leader").await == Some(1.0) {
                return Some(i);
            }
        }
        None
    }

    /// The value of member `i`'s metric with exactly this name (and labels, as etcd prints them), if it answers.
    pub async fn metric(&self, i: usize, name: &str) -> Option<f64> {
        if !self.nodes[i].is_active() {
            return None;
        }
        let metrics = self.http(i, "/metrics").await?;
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    /// Runs `etcdctl` against all members and returns its stdout.
    ///
    /// # Panics
    /// When it is missing or fails, with its stderr.
    pub async fn etcdctl(&self, args: &[&str]) -> String {
        match self.try_etcdctl(args).await {
            Ok(stdout) => stdout,
            Err(stderr) => panic!("etcdctl {args:?} failed: {stderr}"),
        }
    }

    /// Runs `etcdctl` against all members; its stdout, or its stderr if it fails.
    ///
    /// # Errors
    /// What `etcdctl` says.
    pub async fn try_etcdctl(&self, args: &[&str]) -> Result<String, String> {
        self.run_etcdctl(&self.endpoints().join(","), args).await
    }

    /// Like [`try_etcdctl`](Self::try_etcdctl), against member `i` alone.
    ///
    /// # Errors
    /// What `etcdctl` says.
    pub async fn try_etcdctl_at(&self, i: usize, args: &[&str]) -> Result<String, String> {
        self.run_etcdctl(&self.endpoints()[i], args).await
    }

    async fn run_etcdctl(&self, endpoints: &str, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(programs::program("etcdctl", "etcd-client"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ETCDCTL")) {
            command.env_remove(name);
        }
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", endpoints])
            .args(args);
        if let Some(certs) = &self.certs {
            command.arg("--cacert").arg(&certs.ca);
            command
                .arg("--cert")
                .arg(&certs.client.cert)
                .arg("--key")
                .arg(&certs.client.key);
        }
        let output = command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("etcdctl starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    async fn alarmed(&self, i: usize) -> bool {
        self.metric(i, "etcd_server_has_leader").await == Some(1.0)
            && self
                .try_etcdctl_at(i, &["alarm", "list"])
                .await
                .is_ok_and(|alarms| alarms.contains("alarm:"))
    }

    async fn http(&self, i: usize, path: &str) -> Option<String> {
        let exchange = async {
            let mut stream = TcpStream::connect(self.monitors[i]).await.ok()?;
            let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            Some(answer)
        };
        timeout(PROBE, exchange).await.ok().flatten()
    }
}
