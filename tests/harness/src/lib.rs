//! What the tests of all crates share: private, real etcd and ZooKeeper servers, a TCP proxy that injects faults, and
//! [`eventually`].
//!
//! Everything here panics instead of returning errors where a test could do nothing but unwrap, and a missing program is
//! such a panic too: nothing is skipped. Servers are gone when their cluster is dropped, and also when the test process
//! dies without dropping anything (see [`Sandbox`]).
//!
//! The servers run in real time: do not use a runtime with paused time with them.
//!
//! ```no_run
//! use coord_harness::{EtcdCluster, EtcdOptions, Proxy, eventually};
//! use std::time::Duration;
//!
//! # async fn example() {
//! let etcd = EtcdCluster::start(EtcdOptions { nodes: 3, ..Default::default() }).await;
//! let proxy = Proxy::start(etcd.node(0).client_addr()).await;
//! proxy.black_hole();
//! etcd.node(1).kill();
//! etcd.node(1).restart();
//! etcd.wait_ready(Duration::from_secs(20)).await;
//! proxy.pass();
//! eventually(Duration::from_secs(5), "a leader", async || etcd.leader().await).await;
//! # }
//! ```

mod certs;
mod etcd;
mod eventually;
mod node;
mod ports;
mod programs;
mod proxy;
mod sandbox;
mod zookeeper;

pub use certs::{Certs, Identity, Tls};
pub use etcd::{EtcdCluster, EtcdOptions};
pub use eventually::{Condition, eventually};
pub use node::{Node, process_alive};
pub use proxy::{Direction, Flow, Proxy, Stats, Traffic};
pub use sandbox::Sandbox;
pub use zookeeper::{ZkEnsemble, ZkOptions};
