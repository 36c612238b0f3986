use std::net::SocketAddr;

use coord_harness::{EtcdCluster, EtcdOptions, Node, ZkEnsemble, ZkOptions};

/// One server.
pub(crate) enum Store {
    Etcd(EtcdCluster),
    ZooKeeper(ZkEnsemble),
}

impl Store {
    pub(crate) async fn etcd() -> Store {
        Store::Etcd(EtcdCluster::start(EtcdOptions::default()).await)
    }

    pub(crate) async fn zookeeper() -> Store {
        Store::ZooKeeper(ZkEnsemble::start(ZkOptions::default()).await)
    }

    pub(crate) fn node(&self) -> &Node {
        match self {
            Store::Etcd(etcd) => etcd.node(0),
            Store::ZooKeeper(zookeeper) => zookeeper.node(0),
        }
    }

    /// Its URL, below a prefix.
    pub(crate) fn url(&self) -> String {
        self.url_at(self.node().client_addr())
    }

    /// The URL of another way to it.
    pub(crate) fn url_at(&self, address: SocketAddr) -> String {
        match self {
            Store::Etcd(_) => format!("etcd://{address}/tests"),
            Store::ZooKeeper(_) => format!("zk://{address}/tests"),
        }
    }
}
