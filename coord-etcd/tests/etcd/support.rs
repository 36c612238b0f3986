//! What the tests of this driver share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, Expect, Key, LeaseId, Result, Target, Watch, WatchEvent};
use coord_conformance::Opener;
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use coord_harness::{EtcdCluster, EtcdOptions, Proxy, eventually};

/// For conditions that hold soon on an idle machine, and surely on a loaded one.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The deadline of calls that are meant to fail.
pub(crate) const LIMIT: Duration = Duration::from_millis(1200);

/// Opens clients of some etcd.
pub(crate) struct Etcd(pub(crate) EtcdConfig);

#[async_trait::async_trait]
impl Opener for Etcd {
    async fn open(&self) -> Result<Arc<dyn Coordinator>> {
        Ok(open(&self.0))
    }
}

pub(crate) fn open(config: &EtcdConfig) -> Arc<EtcdCoordinator> {
    EtcdCoordinator::open(config.clone(), Env::system()).expect("the configuration works")
}

/// A client of these endpoints whose calls end after `deadline`.
pub(crate) fn client(endpoints: Vec<String>, deadline: Duration) -> Arc<EtcdCoordinator> {
    let mut config = EtcdConfig::new(endpoints);
    config.call_deadline = deadline;
    open(&config)
}

pub(crate) async fn nodes(nodes: usize) -> EtcdCluster {
    let options = EtcdOptions {
        nodes,
        ..EtcdOptions::default()
    };
    EtcdCluster::start(options).await
}

pub(crate) async fn proxies(etcd: &EtcdCluster) -> (Vec<Proxy>, Vec<String>) {
    let mut proxies = Vec::new();
    for node in etcd.nodes() {
        proxies.push(Proxy::start(node.client_addr()).await);
    }
    let endpoints = proxies.iter().map(|proxy| format!("http://{}", proxy.addr())).collect();
    (proxies, endpoints)
}

pub(crate) async fn behind_a_proxy() -> (EtcdCluster, Proxy, AtWork) {
    let etcd = nodes(1).await;
    let (mut proxies, endpoints) = proxies(&etcd).await;
    let work = AtWork::start(client(endpoints, LIMIT)).await;
    (etcd, proxies.remove(0), work)
}

pub(crate) fn key(key: &str) -> Key {
    key.parse().expect("a key")
}

fn child(dir: &Key, name: &str) -> Key {
    dir.child(name).expect("a name")
}

/// A client at work, before, during and after a fault: a lease, an entry under it, and a watch.
pub(crate) struct AtWork {
    pub(crate) client: Arc<EtcdCoordinator>,
    pub(crate) lease: LeaseId,
    dir: Key,
    watch: Watch,
    counter: AtomicU64,
}

impl AtWork {
    pub(crate) async fn start(client: Arc<EtcdCoordinator>) -> AtWork {
        AtWork::start_at(client, "/work").await
    }

    pub(crate) async fn start_at(client: Arc<EtcdCoordinator>, dir: &str) -> AtWork {
        let dir = key(dir);
        let lease = client.grant(Duration::from_secs(60)).await.unwrap().lease;
        client.create_persistent(&child(&dir, "state"), "0").await.unwrap();
        client
            .create_ephemeral(&child(&dir, "me"), "alive", lease)
            .await
            .unwrap();
        let mut watch = client.watch(&Target::Children(dir.clone())).await.unwrap();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::State(entries))) if entries.len() == 2));
        AtWork {
            client,
            lease,
            dir,
            watch,
            counter: AtomicU64::new(0),
        }
    }

    /// While the store cannot be reached: every call ends by its deadline with an error that says so.
    pub(crate) async fn every_call_fails_in_time(&self) {
        let limit = self.client.capabilities().call_deadline;
        let started = std::time::Instant::now();
        let state = self.state();
        let children = Target::Children(self.dir.clone());
        let fresh = self.fresh();
        let (get, latest, list, create, update, grant, renew, watch) = tokio::join!(
            self.client.get(&state),
            self.client.get_latest(&state),
            self.client.children(&state),
            self.client.create_persistent(&fresh, "x"),
            self.client.update(&state, "lost".into(), Expect::Any),
            self.client.grant(Duration::from_secs(5)),
            self.client.renew(self.lease),
            self.client.watch(&children),
        );
        let took = started.elapsed();
        assert!(took < limit + Duration::from_secs(3), "{took:?} for calls of {limit:?}");
        for error in [
            get.unwrap_err(),
            latest.unwrap_err(),
            list.unwrap_err(),
            create.unwrap_err(),
            update.unwrap_err(),
            grant.unwrap_err(),
            renew.unwrap_err(),
            watch.unwrap_err(),
        ] {
            assert!(error.is_transient() && !error.is_definite(), "{error:?}");
            let read = error.operation().is_read();
            assert!(!(read && error.is_unknown()), "{error:?}");
        }
    }

    /// After the fault: reads, writes, the lease and the watch work, with the same client.
    pub(crate) async fn works_again(&mut self) {
        let value = format!("again {}", self.counter.fetch_add(1, Ordering::Relaxed));
        let (client, fresh) = (self.client.clone(), self.fresh());
        let state = self.state();
        eventually(SOON, "reads and writes work again", async || {
            client.get_latest(&state).await?;
            client.update(&state, value.clone().into(), Expect::Any).await?;
            client.renew(self.lease).await.map(drop)
        })
        .await;
        client.create_persistent(&fresh, "x").await.unwrap();
        let seen = async {
            loop {
                let entries = match self.watch.next().await.expect("it goes on").expect("without an error") {
                    WatchEvent::State(entries) | WatchEvent::Resync(entries) => entries,
                    WatchEvent::Put(entry) => vec![entry],
                    WatchEvent::Delete { .. } => vec![],
                };
                if entries.iter().any(|entry| entry.key == fresh) {
                    return;
                }
            }
        };
        tokio::time::timeout(SOON, seen)
            .await
            .expect("the watch sees what happens after the fault");
        assert_eq!(
            client.get(&child(&self.dir, "me")).await.unwrap().unwrap().lease,
            Some(self.lease)
        );
    }

    pub(crate) fn state(&self) -> Key {
        child(&self.dir, "state")
    }

    fn fresh(&self) -> Key {
        child(&self.dir, &format!("new-{:x}", self.client.env().random_u64()))
    }
}
