//! Starts a private cluster and holds it until it is killed: `serve etcd|zk [NODES]`.
//!
//! Prints the endpoints, the process ids and the folder, one line each. For trying things by hand, and for the test that
//! servers do not outlive an owner that was killed.

use coord_harness::{EtcdCluster, EtcdOptions, Node, ZkEnsemble, ZkOptions};
use std::path::Path;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_default();
    let nodes = args
        .next()
        .map_or(1, |count| count.parse().expect("the number of nodes"));
    match kind.as_str() {
        "etcd" => {
            let etcd = EtcdCluster::start(EtcdOptions {
                nodes,
                ..Default::default()
            })
            .await;
            hold(&etcd.endpoints(), etcd.nodes(), etcd.dir()).await;
        }
        "zk" => {
            let zk = ZkEnsemble::start(ZkOptions {
                nodes,
                ..Default::default()
            })
            .await;
            hold(&zk.endpoints(), zk.nodes(), zk.dir()).await;
        }
        _ => panic!("usage: serve etcd|zk [NODES]"),
    }
}

async fn hold(endpoints: &[String], nodes: &[Node], dir: &Path) {
    let pids: Vec<String> = nodes.iter().filter_map(Node::pid).map(|pid| pid.to_string()).collect();
    println!("endpoints {}", endpoints.join(","));
    println!("pids {}", pids.join(" "));
    println!("dir {}", dir.display());
    std::future::pending::<()>().await;
}
