//! What an acknowledgement of a lease is worth: answers held back, leaders deposed, requests that come late.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, ErrorKind, Task};
use coord_etcd::EtcdCoordinator;
use coord_harness::{Direction, Flow, Proxy, Stats, eventually};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::cluster_faults::{leader, other_leader};
use crate::support::{SOON, client, key, nodes};

/// What is on its way arrives within this time. If it does not, a test shows less, but nothing that is untrue.
const QUIET: Duration = Duration::from_millis(150);

/// Waits until nothing moves any more.
async fn quiet(way: &Proxy) {
    let mut before: Option<Stats> = None;
    loop {
        let now = way.stats();
        if before.replace(now) == Some(now) {
            return;
        }
        tokio::time::sleep(QUIET).await;
    }
}

/// Holds back the answers, and lets the first keep-alive of a renewal be answered and no more: the second one, which is
/// the one that counts, is sent and held back when this returns.
async fn second_keep_alive_sent(way: &Proxy) {
    quiet(way).await;
    way.hold_requests();
    way.set(Direction::ToClient, Flow::Pass);
    quiet(way).await;
    way.set(Direction::ToClient, Flow::Hold);
}

/// Lets connections through to `target`, until it is closed: then it keeps those that there are and takes no more.
struct Door {
    addr: SocketAddr,
    closed: Arc<AtomicBool>,
    _task: Task,
}

impl Door {
    async fn before(target: SocketAddr, env: &Env) -> Door {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = closed.clone();
        let task = env.spawn(async move {
            let mut inside = JoinSet::new();
            while let Ok((mut outer, _)) = listener.accept().await {
                if !is_closed.load(Ordering::SeqCst) {
                    inside.spawn(async move {
                        let mut inner = TcpStream::connect(target).await?;
                        outer.set_nodelay(true)?;
                        tokio::io::copy_bidirectional(&mut outer, &mut inner).await
                    });
                }
            }
        });
        Door {
            addr,
            closed,
            _task: task,
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_acknowledgement_of_a_deposed_leader_is_not_believed() {
    const TTL: Duration = Duration::from_secs(4);
    let etcd = nodes(3).await;
    let observer = client(etcd.endpoints(), SOON);
    let deposed = leader(&etcd).await;
    // A client that knows only the leader: it hears nothing but what that one says, and when the proxy likes.
    let way = Proxy::start(etcd.node(deposed).client_addr()).await;
    let door = Door::before(way.addr(), observer.env()).await;
    let captive = client(vec![format!("http://{}", door.addr)], SOON);
    let env = captive.env();
    let (grant, entry) = captive.create_with_ttl(&key("/captive"), "x", TTL).await.unwrap();
    // It would try other connections, too, and renew through them.
    door.close();
    way.set(Direction::ToClient, Flow::Hold);
    let fault = async {
        // The first keep-alive is answered while the leader is one.
        quiet(&way).await;
        etcd.node(deposed).pause();
        let paused = env.now();
        other_leader(&etcd, deposed).await;
        // By now the other one has given the lease a full ttl. It has heard nothing of what comes.
        env.sleep_until(paused + TTL / 2).await;
        second_keep_alive_sent(&way).await;
        way.release();
        quiet(&way).await;
        let slept = env.now() - paused;
        // Awake, it acknowledges before it learns that it is no leader any more. The acknowledgement is held back until
        // a write can go through it again.
        etcd.node(deposed).resume();
        eventually(SOON, "the lease ends", async || {
            observer.get_latest(&entry.key).await.unwrap().is_none()
        })
        .await;
        eventually(SOON, "the deposed one follows", async || {
            etcd.metric(deposed, "etcd_server_is_leader").await == Some(0.0)
                && etcd.metric(deposed, "etcd_server_has_leader").await == Some(1.0)
        })
        .await;
        println!("slept {slept:?}, answers held for {:?}", env.now() - paused);
        way.pass();
    };
    let (renewed, ()) = tokio::join!(captive.renew(grant.lease), fault);
    let error = renewed.expect_err("the lease has ended");
    assert!(error.is_lease_lost(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_that_is_older_than_the_ttl_is_not_believed() {
    let etcd = nodes(1).await;
    let observer = client(etcd.endpoints(), SOON);
    let way = Proxy::start(etcd.node(0).client_addr()).await;
    let captive = client(vec![format!("http://{}", way.addr())], SOON);
    let (grant, entry) = captive
        .create_with_ttl(&key("/captive"), "x", Duration::from_secs(2))
        .await
        .unwrap();
    way.set(Direction::ToClient, Flow::Hold);
    let fault = async {
        second_keep_alive_sent(&way).await;
        way.release();
        quiet(&way).await;
        // Acknowledged. What is tried from here on does not reach the server.
        way.hold_requests();
        eventually(SOON, "the lease ends", async || {
            observer.get_latest(&entry.key).await.unwrap().is_none()
        })
        .await;
        way.pass();
    };
    let (renewed, ()) = tokio::join!(captive.renew(grant.lease), fault);
    let error = renewed.expect_err("the lease has ended");
    assert!(error.is_lease_lost(), "{error:?}");
}

/// A client that asks this way first.
async fn preferring(way: &Proxy, other: String) -> Arc<EtcdCoordinator> {
    loop {
        let (before, endpoints) = (
            way.stats().accepted,
            vec![format!("http://{}", way.addr()), other.clone()],
        );
        let client = client(endpoints, SOON);
        client.get(&key("/first")).await.unwrap();
        if way.stats().accepted > before {
            return client;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_copy_of_a_grant_brings_no_lease_back() {
    let etcd = nodes(1).await;
    let way = Proxy::start(etcd.node(0).client_addr()).await;
    for round in 0..10 {
        let client = preferring(&way, etcd.endpoints().remove(0)).await;
        way.hold_requests();
        // One copy is held back, the other granted.
        let lease = client.grant(Duration::from_secs(60)).await.unwrap().lease;
        client.create_ephemeral(&key("/mine"), "x", lease).await.unwrap();
        etcd.etcdctl(&["lease", "revoke", &lease.to_string()]).await;
        if round % 2 == 0 {
            assert!(client.renew(lease).await.unwrap_err().is_lease_lost());
        } else {
            client.revoke(lease).await.unwrap();
        }
        way.pass();
        quiet(&way).await;
        let renewed = client.renew(lease).await.map(|grant| grant.ttl);
        assert!(
            matches!(&renewed, Err(error) if error.is_lease_lost()),
            "round {round}: {renewed:?}"
        );
        let created = client.create_ephemeral(&key("/mine"), "x", lease).await.unwrap_err();
        assert_eq!(
            *created.kind(),
            ErrorKind::LeaseLost(lease),
            "round {round}: {created:?}"
        );
        client.close().await.unwrap();
    }
}
