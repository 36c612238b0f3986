//! Private ZooKeeper ensembles.

mod config;
mod options;
mod ways;

pub use options::ZkOptions;

use crate::{
    certs::{Certs, Tls},
    eventually::eventually,
    node::{Launch, Node},
    programs,
    sandbox::Sandbox,
};
use config::{Ports, arguments, configure, members};
use std::{io, net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use ways::Ways;

const START_DEADLINE: Duration = Duration::from_secs(60);
const PROBE: Duration = Duration::from_secs(2);

/// `zookeeper.jar` names most of what it needs in its manifest; these it leaves out: a place to log to, and what Netty
/// needs for TLS.
const JARS: [(&str, &str); 5] = [
    ("/usr/share/java/zookeeper.jar", "zookeeper"),
    ("/usr/share/java/slf4j-simple.jar", "libslf4j-java"),
    ("/usr/share/java/netty-codec.jar", "libnetty-java"),
    ("/usr/share/java/netty-resolver.jar", "libnetty-java"),
    (
        "/usr/share/java/netty-transport-native-unix-common.jar",
        "libnetty-java",
    ),
];

/// A private ZooKeeper ensemble; gone when dropped.
#[derive(Debug)]
pub struct ZkEnsemble {
    nodes: Vec<Node>,
    plain: Vec<SocketAddr>,
    certs: Option<Certs>,
    /// Between the servers, if they can be cut off from each other.
    ways: Option<Ways>,
    sandbox: Arc<Sandbox>,
}

impl ZkEnsemble {
    /// Starts the servers and waits until all serve.
    ///
    /// # Panics
    /// When Java or ZooKeeper's jars are missing, or when it does not start.
    pub async fn start(options: ZkOptions) -> Self {
        let java = programs::program("java", "default-jre-headless");
        let class_path = JARS.map(|(jar, package)| programs::file(jar, package)).join(":");
        let sandbox = Arc::new(Sandbox::new());
        let certs = (options.tls != Tls::Off).then(|| Certs::generate(&sandbox.dir().join("certs")));
        let ports: Vec<Ports> = (0..options.nodes).map(|_| Ports::new()).collect();
        let ways = match options.partitions {
            true => Some(Ways::start(&ports).await),
            false => None,
        };
        let members: Vec<String> = (0..ports.len()).map(|i| members(&ports, ways.as_ref(), i)).collect();
        let plain = ports.iter().map(|ports| ports.client.addr()).collect();
        let mut nodes = Vec::new();
        for (i, ports) in ports.into_iter().enumerate() {
            let config = configure(&options, certs.as_ref(), sandbox.dir(), i, &members[i], &ports);
            let launch = Launch {
                program: java.clone(),
                args: arguments(&options, &class_path, config).into(),
                env: options.env.clone(),
                // Java prints a line about each of these, and they change the heap.
                env_strip: "JAVA_",
                log: sandbox.dir().join(format!("s{i}.log")),
            };
            let Ports {
                client,
                secure,
                quorum,
                election,
            } = ports;
            let addr = if certs.is_some() { secure.addr() } else { client.addr() };
            nodes.push(Node::start(
                sandbox.clone(),
                launch,
                addr,
                vec![client, secure, quorum, election],
            ));
        }
        let ensemble = Self {
            nodes,
            plain,
            certs,
            ways,
            sandbox,
        };
        ensemble.wait_ready(START_DEADLINE).await;
        ensemble
    }

    /// The servers in the order of their numbers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Server `i`, from 0.
    pub fn node(&self, i: usize) -> &Node {
        &self.nodes[i]
    }

    /// The client addresses, `host:port`; with TLS, of the secure ports.
    pub fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.client_addr().to_string()).collect()
    }

    /// The endpoints as one string with commas, as ZooKeeper's clients take them.
    pub fn connect_string(&self) -> String {
        self.endpoints().join(",")
    }

    /// The certificates, if TLS is on.
    pub fn certs(&self) -> Option<&Certs> {
        self.certs.as_ref()
    }

    /// The folder of data, logs and certificates.
    pub fn dir(&self) -> &Path {
        self.sandbox.dir()
    }

    /// Waits until every server that is neither down nor paused says in which mode it serves.
    ///
    /// # Panics
    /// When that takes longer than `deadline`, or when a server ends by itself.
    pub async fn wait_ready(&self, deadline: Duration) {
        for (i, node) in self.nodes.iter().enumerate() {
            eventually(deadline, &format!("ZooKeeper server s{i} serves"), async || {
                if let Some(obituary) = node.obituary() {
                    panic!("{obituary}");
                }
                if !node.is_active() || self.mode(i).await.is_some() {
                    return Ok(());
                }
                Err(node.log_tail())
            })
            .await;
        }
    }

    /// The index of the leader (a single server is its own), if one serves.
    pub async fn leader(&self) -> Option<usize> {
        for i in 0..self.nodes.len() {
            if matches!(self.mode(i).await.as_deref(), Some("leader" | "standalone")) {
                return Some(i);
            }
        }
        None
    }

    /// `leader`, `follower` or `standalone`; none if server `i` does not serve.
    pub async fn mode(&self, i: usize) -> Option<String> {
        if !self.nodes[i].is_active() {
            return None;
        }
        let answer = self.four_letter(i, "srvr").await.ok()?;
        answer
            .lines()
            .find_map(|line| line.strip_prefix("Mode: "))
            .map(str::to_owned)
    }

    /// Nothing passes between server `i` and the others any more, until [`rejoin`](Self::rejoin). Clients reach all.
    ///
    /// # Panics
    /// Unless the ensemble was started with `partitions`.
    pub fn isolate(&self, i: usize) {
        self.ways.as_ref().expect("started with `partitions`").isolate(i);
    }

    /// Everything passes between all servers again.
    pub fn rejoin(&self) {
        if let Some(ways) = &self.ways {
            ways.rejoin();
        }
    }

    /// Kills server `i`, removes all that it has stored, and starts it again under the same number. The others must
    /// serve: they know what it has forgotten.
    ///
    /// # Panics
    /// When its data cannot be removed.
    pub fn replace(&self, i: usize) {
        self.nodes[i].kill();
        let data = self.dir().join(format!("s{i}/version-2"));
        std::fs::remove_dir_all(data).expect("the server's data is removed");
        self.nodes[i].restart();
    }

    /// Asks server `i` a four-letter word: `srvr`, `mntr`, `cons`, `wchs`, …
    ///
    /// # Errors
    /// When the server is down or does not answer within two seconds.
    pub async fn four_letter(&self, i: usize, word: &str) -> io::Result<String> {
        let exchange = async {
            let mut stream = TcpStream::connect(self.plain[i]).await?;
            stream.write_all(word.as_bytes()).await?;
            let mut answer = Vec::new();
            // The server may reset the connection behind its last byte; what came before is the answer.
            match stream.read_to_end(&mut answer).await {
                Err(error) if answer.is_empty() => Err(error),
                _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
            }
        };
        timeout(PROBE, exchange).await?
    }
}
