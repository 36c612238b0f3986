//! The scenarios of session and registry, on servers that are killed, stopped and cut off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, Env, LeaseId};
use coord_harness::{Proxy, ZkEnsemble};
use coord_recipes_tests::World;
use coord_zk::{ZkConfig, ZkCoordinator};

use crate::support::{self, HEAL, force_expiry};

/// How many scenarios run at the same time, each with a server of its own.
const AT_ONCE: usize = 4;

/// One server behind a proxy.
struct ZkWorld {
    ensemble: ZkEnsemble,
    proxy: Proxy,
    clients: Mutex<Vec<Arc<ZkCoordinator>>>,
}

impl ZkWorld {
    async fn start() -> Arc<ZkWorld> {
        let ensemble = support::ensemble(1).await;
        let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
        Arc::new(ZkWorld {
            ensemble,
            proxy,
            clients: Mutex::default(),
        })
    }

    fn client(&self, env: Env) -> Arc<dyn Coordinator> {
        let config = ZkConfig {
            call_deadline: Duration::from_secs(2),
            ..support::config(self.proxy.addr().to_string())
        };
        let client = ZkCoordinator::open(config, env).expect("a valid configuration");
        self.clients.lock().unwrap().push(client.clone());
        client
    }
}

#[async_trait]
impl World for ZkWorld {
    async fn open(&self) -> Arc<dyn Coordinator> {
        self.client(Env::system())
    }

    async fn open_movable(&self) -> Arc<dyn Coordinator> {
        self.client(Env::tokio())
    }

    fn ttl(&self) -> Duration {
        support::TICK * 20
    }

    fn tolerance(&self) -> Duration {
        Duration::from_millis(250)
    }

    async fn stop(&self) {
        self.ensemble.node(0).kill();
    }

    async fn start(&self) {
        self.ensemble.node(0).restart();
        self.ensemble.wait_ready(HEAL).await;
    }

    async fn pause(&self) {
        self.ensemble.node(0).pause();
    }

    async fn resume(&self) {
        self.ensemble.node(0).resume();
    }

    async fn swallow(&self) {
        self.proxy.black_hole();
    }

    async fn heal(&self) {
        self.proxy.pass();
    }

    async fn revoke(&self, lease: LeaseId) {
        let clients = self.clients.lock().unwrap().clone();
        let mut sessions = clients.iter().flat_map(|client| client.sessions());
        let session = sessions.find(|session| session.id().0 as u64 == lease.0);
        force_expiry(&self.ensemble, &session.expect("a session of ours")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_and_registry_keep_their_promises() {
    coord_recipes_tests::run_all(AT_ONCE, ZkWorld::start).await;
}
