use coord_election_tests::Store;
use coord_harness::{EtcdCluster, EtcdOptions, Proxy, ZkEnsemble, ZkOptions};

/// One server.
pub(crate) enum Theatre {
    Etcd(EtcdCluster),
    ZooKeeper(ZkEnsemble),
}

impl Theatre {
    pub(crate) async fn open(store: Store) -> Theatre {
        match store {
            Store::Etcd => Theatre::Etcd(EtcdCluster::start(EtcdOptions::default()).await),
            Store::ZooKeeper => Theatre::ZooKeeper(ZkEnsemble::start(ZkOptions::default()).await),
        }
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        match self {
            Theatre::Etcd(etcd) => etcd.node(0).client_addr(),
            Theatre::ZooKeeper(zookeeper) => zookeeper.node(0).client_addr(),
        }
    }

    /// A way to the server that can be cut off.
    pub(crate) async fn way(&self) -> Proxy {
        Proxy::start(self.address()).await
    }
}
