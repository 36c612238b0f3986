use std::time::Duration;

use coord_harness::{EtcdCluster, EtcdOptions, Node, ZkEnsemble, ZkOptions, eventually};

use crate::client::Store;

/// How long servers may take to serve again on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Small enough to be filled quickly, and much more than the workload needs.
const QUOTA: u64 = 32 * 1024 * 1024;

/// The servers.
#[derive(Debug)]
pub enum Cluster {
    /// Of etcd.
    Etcd(EtcdCluster),
    /// Of ZooKeeper.
    ZooKeeper(ZkEnsemble),
}

impl Cluster {
    /// Starts `nodes` of them.
    pub async fn start(store: Store, nodes: usize) -> Cluster {
        let partitions = nodes > 1;
        match store {
            Store::Etcd => Cluster::Etcd(
                EtcdCluster::start(EtcdOptions {
                    nodes,
                    partitions,
                    // A busy machine must not look like a fault. The shortest lease is two seconds then.
                    heartbeat: Duration::from_millis(100),
                    election_timeout: Duration::from_secs(1),
                    quota_bytes: Some(QUOTA),
                    ..EtcdOptions::default()
                })
                .await,
            ),
            Store::ZooKeeper => Cluster::ZooKeeper(
                ZkEnsemble::start(ZkOptions {
                    nodes,
                    partitions,
                    tick: crate::client::TICK,
                    ..ZkOptions::default()
                })
                .await,
            ),
        }
    }

    /// Which store.
    pub fn store(&self) -> Store {
        match self {
            Cluster::Etcd(_) => Store::Etcd,
            Cluster::ZooKeeper(_) => Store::ZooKeeper,
        }
    }

    /// All servers.
    pub fn nodes(&self) -> &[Node] {
        match self {
            Cluster::Etcd(etcd) => etcd.nodes(),
            Cluster::ZooKeeper(zookeeper) => zookeeper.nodes(),
        }
    }

    /// Where they listen, without any proxy.
    pub fn addrs(&self) -> Vec<String> {
        self.nodes().iter().map(|node| node.client_addr().to_string()).collect()
    }

    /// The leader, as soon as there is one.
    pub async fn leader(&self) -> usize {
        eventually(PATIENCE, "the servers have a leader", async || match self {
            Cluster::Etcd(etcd) => etcd.leader().await,
            Cluster::ZooKeeper(zookeeper) => zookeeper.leader().await,
        })
        .await
    }

    /// Kills server `i` if it runs, and starts it again.
    pub fn restart(&self, i: usize) {
        match self {
            Cluster::Etcd(etcd) => etcd.restart(i),
            Cluster::ZooKeeper(zookeeper) => zookeeper.node(i).restart(),
        }
    }

    /// Cuts server `i` off from the others.
    pub fn isolate(&self, i: usize) {
        match self {
            Cluster::Etcd(etcd) => etcd.isolate(i),
            Cluster::ZooKeeper(zookeeper) => zookeeper.isolate(i),
        }
    }

    /// Ends that.
    pub fn rejoin(&self) {
        match self {
            Cluster::Etcd(etcd) => etcd.rejoin(),
            Cluster::ZooKeeper(zookeeper) => zookeeper.rejoin(),
        }
    }

    /// Removes server `i`, wipes it, and adds it anew.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn replace(&self, i: usize) -> Result<(), String> {
        match self {
            Cluster::Etcd(etcd) => etcd.replace(i).await,
            Cluster::ZooKeeper(zookeeper) => {
                zookeeper.replace(i);
                Ok(())
            }
        }
    }

    /// Waits until all servers that should serve do.
    pub async fn wait_ready(&self) {
        match self {
            Cluster::Etcd(etcd) => etcd.wait_ready(PATIENCE).await,
            Cluster::ZooKeeper(zookeeper) => zookeeper.wait_ready(PATIENCE).await,
        }
    }
}
