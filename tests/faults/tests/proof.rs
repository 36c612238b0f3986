//! Until when a lease surely lives counts from a moment of sending, and never from an answer: exactly, where a schedule of
//! faults cannot show it (the margin, and the time that a store takes to end a lease, hide a lie of less than a second).

use std::time::Duration;

use coord_api::Env;
use coord_faults::Cluster;
use coord_faults::client::Store;
use coord_harness::{Direction, Flow, Proxy};

const TTL: Duration = Duration::from_secs(3);
/// How late each answer is.
const LATE: Duration = Duration::from_millis(300);

async fn counts_from_the_sending(store: Store) {
    let cluster = Cluster::start(store, 1).await;
    let way = Proxy::start(cluster.nodes()[0].client_addr()).await;
    let servers = [way.addr().to_string()];
    let coordinator = store.open(&servers, Duration::from_secs(10), Env::system()).unwrap();
    let env = coordinator.env();
    // Connected before answers are late.
    let first = coordinator.grant(TTL).await.unwrap();
    way.set(Direction::ToClient, Flow::Delay(LATE));
    let granted = coordinator.grant(TTL).await.unwrap();
    let answered = env.now();
    let until = answered + granted.ttl - LATE;
    assert!(
        granted.valid_until <= until,
        "granted for {:?} too long",
        granted.valid_until - until
    );
    for _ in 0..2 {
        let renewed = coordinator.renew(granted.lease).await.unwrap();
        let answered = env.now();
        let until = answered + renewed.ttl - LATE;
        assert!(renewed.valid_until > answered, "it proves nothing");
        assert!(
            renewed.valid_until <= until,
            "renewed for {:?} too long",
            renewed.valid_until - until
        );
    }
    way.pass();
    for lease in [first.lease, granted.lease] {
        let _ = coordinator.revoke(lease).await;
    }
    coordinator.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_etcd() {
    counts_from_the_sending(Store::Etcd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_zookeeper() {
    counts_from_the_sending(Store::ZooKeeper).await;
}
