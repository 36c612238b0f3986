//! The scenarios of session and registry, on servers that are killed, stopped and cut off.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, Env, LeaseId};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions, Proxy};
use coord_recipes_tests::World;

/// How many scenarios run at the same time, each with a server of its own.
const AT_ONCE: usize = 6;

/// How long a restart may take on a loaded machine.
const RESTART: Duration = Duration::from_secs(20);

/// One server behind a proxy.
struct EtcdWorld {
    etcd: EtcdCluster,
    proxy: Proxy,
}

impl EtcdWorld {
    async fn start() -> Arc<EtcdWorld> {
        let etcd = EtcdCluster::start(EtcdOptions::default()).await;
        let proxy = Proxy::start(etcd.node(0).client_addr()).await;
        Arc::new(EtcdWorld { etcd, proxy })
    }

    fn client(&self, env: Env) -> Arc<dyn Coordinator> {
        let mut config = EtcdConfig::new([self.proxy.addr().to_string()]);
        config.call_deadline = Duration::from_secs(2);
        EtcdCoordinator::open(config, env).expect("the configuration works")
    }
}

#[async_trait]
impl World for EtcdWorld {
    async fn open(&self) -> Arc<dyn Coordinator> {
        self.client(Env::system())
    }

    async fn open_movable(&self) -> Arc<dyn Coordinator> {
        self.client(Env::tokio())
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn tolerance(&self) -> Duration {
        Duration::from_millis(250)
    }

    async fn stop(&self) {
        self.etcd.node(0).kill();
    }

    async fn start(&self) {
        self.etcd.node(0).restart();
        self.etcd.wait_ready(RESTART).await;
    }

    async fn pause(&self) {
        self.etcd.node(0).pause();
    }

    async fn resume(&self) {
        self.etcd.node(0).resume();
    }

    async fn swallow(&self) {
        self.proxy.black_hole();
    }

    async fn heal(&self) {
        self.proxy.pass();
    }

    async fn revoke(&self, lease: LeaseId) {
        self.etcd.etcdctl(&["lease", "revoke", &lease.to_string()]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_and_registry_keep_their_promises() {
    coord_recipes_tests::run_all(AT_ONCE, EtcdWorld::start).await;
}
