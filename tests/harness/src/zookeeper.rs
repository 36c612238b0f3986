//! Private ZooKeeper ensembles.

use crate::{
    certs::{Certs, Tls},
    eventually::eventually,
    node::{Launch, Node},
    ports::ReservedPort,
    programs,
    sandbox::Sandbox,
};
use std::{
    ffi::OsString,
    fmt::Write,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

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

/// How to start a [`ZkEnsemble`].
#[derive(Debug, Clone)]
pub struct ZkOptions {
    /// One or three servers; default one.
    pub nodes: usize,
    /// Sessions last between 2 and 20 ticks; default 200 ms.
    pub tick: Duration,
    /// Connections allowed per client address; default 0, which is no limit.
    pub max_client_cnxns: u32,
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
            tls: Tls::Off,
            config: Vec::new(),
            properties: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// A private ZooKeeper ensemble; gone when dropped.
#[derive(Debug)]
pub struct ZkEnsemble {
    nodes: Vec<Node>,
    plain: Vec<SocketAddr>,
    certs: Option<Certs>,
    sandbox: Arc<Sandbox>,
}

/// The ports of one server.
struct Ports {
    client: ReservedPort,
    secure: ReservedPort,
    quorum: ReservedPort,
    election: ReservedPort,
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
        let members = members(&ports);
        let plain = ports.iter().map(|ports| ports.client.addr()).collect();
        let mut nodes = Vec::new();
        for (i, ports) in ports.into_iter().enumerate() {
            let config = configure(&options, certs.as_ref(), sandbox.dir(), i, &members, &ports);
            let launch = Launch {
                program: java.clone(),
                args: arguments(&options, &class_path, config),
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

impl Ports {
    fn new() -> Self {
        Self {
            client: ReservedPort::new(),
            secure: ReservedPort::new(),
            quorum: ReservedPort::new(),
            election: ReservedPort::new(),
        }
    }
}

/// The `server.N` lines; none for a single server, which runs standalone.
fn members(ports: &[Ports]) -> String {
    if ports.len() < 2 {
        return String::new();
    }
    let line = |(i, ports): (usize, &Ports)| {
        format!(
            "server.{}={}:{}\n",
            i + 1,
            ports.quorum.addr(),
            ports.election.addr().port()
        )
    };
    ports.iter().enumerate().map(line).collect()
}

/// Writes server `i`'s configuration and number and returns the configuration's path.
fn configure(
    options: &ZkOptions,
    certs: Option<&Certs>,
    dir: &Path,
    i: usize,
    members: &str,
    ports: &Ports,
) -> PathBuf {
    let data = dir.join(format!("s{i}"));
    fs::create_dir_all(&data).expect("the data folder");
    fs::write(data.join("myid"), (i + 1).to_string()).expect("the server's number");
    let tick = options.tick.as_millis().max(1);
    // In ticks, but a busy machine is slow in seconds: 20 s to join, 2 s to stay in touch.
    let (init, sync) = ((20_000 / tick).max(10), (2_000 / tick).max(5));
    let mut text = format!(
        "tickTime={tick}\ninitLimit={init}\nsyncLimit={sync}\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\n\
         maxClientCnxns={}\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{members}",
        data.display(),
        ports.client.addr().port(),
        options.max_client_cnxns,
    );
    if let Some(certs) = certs {
        let store = dir.join(format!("certs/s{i}.pem"));
        let read = |path: &Path| fs::read_to_string(path).expect("a PEM file");
        fs::write(&store, read(&certs.server.key) + &read(&certs.server.cert)).expect("the key store");
        // The type is told by hand: ZooKeeper guesses it from the name's ending, and the authority's is `.crt`.
        write!(
            text,
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPortAddress=127.0.0.1\nsecureClientPort={}\n\
             ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
             ssl.clientAuth={}\n",
            ports.secure.addr().port(),
            store.display(),
            certs.ca.display(),
            if options.tls == Tls::Mutual { "need" } else { "none" },
        )
        .expect("writing to a string");
    }
    for line in &options.config {
        text.push_str(line);
        text.push('\n');
    }
    let path = dir.join(format!("s{i}.cfg"));
    fs::write(&path, text).expect("the configuration");
    path
}

fn arguments(options: &ZkOptions, class_path: &str, config: PathBuf) -> Vec<OsString> {
    // A small heap and the quick compiler alone: up in half a second. No perf data: a killed JVM would leave its file
    // behind. Transaction logs grow by 1 MB at a time instead of 64.
    let mut args: Vec<OsString> = [
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
    ]
    .into_iter()
    .chain(["-Djava.net.preferIPv4Stack=true", "-Dzookeeper.preAllocSize=1024"])
    .map(OsString::from)
    .collect();
    args.extend(
        options
            .properties
            .iter()
            .map(|(name, value)| format!("-D{name}={value}").into()),
    );
    args.extend(["-cp", class_path, "org.apache.zookeeper.server.quorum.QuorumPeerMain"].map(OsString::from));
    args.push(config.into());
    args
}
