use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_harness::{EtcdCluster, EtcdOptions, ZkEnsemble, ZkOptions, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Far beyond what anything here takes, so that a slow machine does not fail a test.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// One server.
pub(crate) enum Store {
    Etcd(EtcdCluster),
    ZooKeeper(ZkEnsemble),
}

/// The nodes of one test.
pub(crate) struct Company {
    pub(crate) store: Store,
    pub(crate) nodes: Vec<Node>,
    readers: JoinSet<()>,
}

/// One process.
pub(crate) struct Node {
    pub(crate) child: Child,
    /// `host:port` among nodes, once it has said so.
    pub(crate) address: String,
    pub(crate) http: String,
    told: Arc<Mutex<Vec<Value>>>,
}

// === impl Store ===

impl Store {
    pub(crate) async fn etcd() -> Store {
        Store::Etcd(EtcdCluster::start(EtcdOptions::default()).await)
    }

    pub(crate) async fn zookeeper() -> Store {
        Store::ZooKeeper(ZkEnsemble::start(ZkOptions::default()).await)
    }

    fn url(&self) -> String {
        match self {
            Store::Etcd(etcd) => format!("etcd://{}", etcd.node(0).client_addr()),
            Store::ZooKeeper(ensemble) => format!("zk://{}", ensemble.node(0).client_addr()),
        }
    }

    pub(crate) fn kill(&self) {
        match self {
            Store::Etcd(etcd) => etcd.node(0).kill(),
            Store::ZooKeeper(ensemble) => ensemble.node(0).kill(),
        }
    }

    pub(crate) async fn start(&self) {
        match self {
            Store::Etcd(etcd) => {
                etcd.node(0).restart();
                etcd.wait_ready(LONG).await;
            }
            Store::ZooKeeper(ensemble) => {
                ensemble.node(0).restart();
                ensemble.wait_ready(LONG).await;
            }
        }
    }
}

// === impl Company ===

impl Company {
    pub(crate) fn new(store: Store) -> Company {
        Company {
            store,
            nodes: vec![],
            readers: JoinSet::new(),
        }
    }

    /// Starts so many nodes at once, and waits until they are one cluster.
    pub(crate) async fn start(&mut self, count: usize) {
        let mut fresh: Vec<Node> = (0..count).map(|_| self.spawn("127.0.0.1:0")).collect();
        for node in &mut fresh {
            node.introduce().await;
        }
        self.nodes.extend(fresh);
    }

    /// Starts a process; at a known address, or at one of its own.
    pub(crate) fn spawn(&mut self, listen: &str) -> Node {
        let mut child = Command::new(env!("CARGO_BIN_EXE_coord"))
            .args(["node", "--json", "--store", &self.store.url(), "--listen", listen])
            .args([
                "--http",
                "127.0.0.1:0",
                "--ttl",
                "2s",
                "--down-after",
                "2s",
                "--reform-after",
                "5s",
            ])
            .env_remove("COORD_STORE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("coord starts");
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let (output, sink) = (child.stdout.take().expect("it is piped"), told.clone());
        self.readers.spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // The last line of a killed process may be cut short.
                if let Ok(row) = serde_json::from_str(&line) {
                    sink.lock().unwrap().push(row);
                }
            }
        });
        Node {
            child,
            address: String::new(),
            http: String::new(),
            told,
        }
    }

    /// Kills a node with -9.
    pub(crate) async fn kill(&mut self, node: usize) -> Node {
        let mut dead = self.nodes.remove(node);
        dead.child.kill().await.expect("it is ours");
        dead
    }

    /// Waits until exactly these nodes are one converged cluster, each with everybody up; its id.
    pub(crate) async fn one_cluster(&self) -> String {
        let mut addresses: Vec<&str> = self.nodes.iter().map(|node| &*node.address).collect();
        addresses.sort_unstable();
        eventually(LONG, "one cluster", async || {
            let mut clusters = BTreeMap::new();
            for node in &self.nodes {
                let page = node.get("/cluster/members").await?;
                let members = page["members"].as_array().ok_or("no members")?;
                let up = members.iter().filter(|member| member["status"] == "Up");
                let mut up: Vec<&str> = up.filter_map(|member| member["node"].as_str()).collect();
                up.sort_unstable();
                if up != addresses || members.len() != up.len() || page["unreachable"] != Value::Array(vec![]) {
                    return Err(format!("{}: {page}", node.address));
                }
                node.get("/ready").await?;
                *clusters.entry(page["cluster"].to_string()).or_insert(0) += 1;
            }
            match clusters.into_iter().next() {
                Some((cluster, count)) if count == self.nodes.len() => Ok(cluster),
                clusters => Err(format!("{clusters:?}")),
            }
        })
        .await
    }

    /// The node that keeps the seeds, as its metrics say.
    pub(crate) async fn manager(&self) -> usize {
        eventually(LONG, "one manager", async || {
            let mut managers = vec![];
            for (number, node) in self.nodes.iter().enumerate() {
                let metrics = node.page("/metrics").await?;
                if metrics.lines().any(|line| line == "coord_bootstrap_managing 1") {
                    managers.push(number);
                }
            }
            match managers[..] {
                [manager] => Ok(manager),
                _ => Err(format!("{managers:?}")),
            }
        })
        .await
    }
}

// === impl Node ===

impl Node {
    /// Waits until it has said where it is.
    pub(crate) async fn introduce(&mut self) {
        let told = self.told.clone();
        let row = eventually(LONG, "it listens", async || {
            let told = told.lock().unwrap();
            told.iter().find(|row| row["event"] == "listening").cloned()
        })
        .await;
        self.address = row["node"].as_str().unwrap().to_owned();
        self.http = row["http"].as_str().unwrap().to_owned();
    }

    /// How often it told this event.
    pub(crate) fn told(&self, event: &str) -> usize {
        self.told
            .lock()
            .unwrap()
            .iter()
            .filter(|row| row["event"] == event)
            .count()
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        serde_json::from_str(&self.page(path).await?).map_err(|error| error.to_string())
    }

    /// The body, if the status is 200.
    pub(crate) async fn page(&self, path: &str) -> Result<String, String> {
        let (status, body) = super::pages::request(&self.http, "GET", path, "").await?;
        if status == 200 {
            Ok(body)
        } else {
            Err(format!("{status}: {body}"))
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32));
        kill_process(pid.expect("it runs"), signal).expect("it is ours");
    }

    /// Waits for its end; whether it was a good one.
    pub(crate) async fn ended(&mut self) -> bool {
        let status = tokio::time::timeout(LONG, self.child.wait()).await;
        status.expect("it ends").expect("its status").success()
    }
}
