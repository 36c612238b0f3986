//! What a registry makes of gaps, lost answers and late requests, which only a store in memory can show at will.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Coordinator, CoordinatorExt, Directory, Env, Expect, Key, LossReason, Operation, Registration, Registry,
    RegistryConfig, Session, SessionConfig,
};
use coord_mem::{Fault, GiveUp, MemClient, MemStore};

const LATE: Duration = Duration::from_secs(3);

struct Node {
    store: MemStore,
    client: Arc<MemClient>,
    other: Arc<MemClient>,
    session: Session,
    registry: Registry,
}

impl Node {
    async fn open() -> Node {
        let store = MemStore::new(&Env::simulated(1));
        let (client, other) = (store.client(), store.client());
        let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
        let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
        soon(session.connected()).await.unwrap();
        Node {
            store,
            client,
            other,
            session,
            registry,
        }
    }

    fn register(&self, id: &str) {
        self.registry.register(Registration::new("web", id, "x")).unwrap();
    }

    async fn settled(&self) {
        soon(self.registry.settled()).await.unwrap();
    }

    async fn is_there(&self, id: &str) -> bool {
        let key = Key::new(format!("/services/web/{id}")).unwrap();
        self.other.get(&key).await.unwrap().is_some()
    }

    async fn delete(&self, id: &str) {
        let key = Key::new(format!("/services/web/{id}")).unwrap();
        self.other.delete(&key, Expect::Any).await.unwrap();
    }
}

/// Fails instead of hanging.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(3600);
    tokio::time::timeout(limit, future).await.expect("it hangs")
}

async fn sleep(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_deleted_in_a_gap_of_the_watch_is_put_back() {
    let node = Node::open().await;
    node.register("1");
    node.settled().await;
    sleep(100).await;
    // Short enough that the lease lives on.
    node.client.faults().cut();
    node.delete("1").await;
    sleep(1000).await;
    assert!(!node.is_there("1").await);
    node.client.faults().heal();
    sleep(3000).await;
    assert!(node.is_there("1").await);
    assert_eq!(node.session.lease().map(|lease| lease.epoch), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_view_drops_what_went_in_a_gap_of_its_watch() {
    let node = Node::open().await;
    node.register("1");
    node.register("2");
    node.settled().await;
    let reader = node.store.client();
    let mut view = Directory::new(reader.clone()).view("web").unwrap();
    soon(view.wait_for(|web| web.len() == 2)).await.unwrap();
    reader.faults().cut();
    node.registry.unregister("web", "1");
    node.settled().await;
    assert_eq!(view.now().unwrap().len(), 2, "it shows what it knew");
    reader.faults().heal();
    let left = soon(view.wait_for(|web| !web.contains_key("1"))).await.unwrap();
    assert_eq!(left.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_create_of_unknown_outcome_that_is_wanted_no_more_never_shows_up() {
    let node = Node::open().await;
    let late = Fault::ArriveLate(GiveUp::AtOnce, LATE);
    node.client.faults().next(Operation::Create, late);
    node.register("1");
    sleep(10).await;
    assert_eq!(node.client.faults().scripted(), 0, "it was sent");
    node.registry.unregister("web", "1");
    node.settled().await;
    for _ in 0..10 {
        sleep(500).await;
        assert!(!node.is_there("1").await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_of_a_create_never_brings_back_what_was_unregistered() {
    let node = Node::open().await;
    let late = Fault::ArriveLate(GiveUp::AtOnce, LATE);
    node.client.faults().next(Operation::Create, late);
    node.register("1");
    // The second try succeeds, long before the first one arrives.
    node.settled().await;
    assert!(node.is_there("1").await);
    node.registry.unregister("web", "1");
    node.settled().await;
    for _ in 0..10 {
        assert!(!node.is_there("1").await);
        sleep(500).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_without_entries_is_watched_no_longer() {
    let node = Node::open().await;
    node.register("1");
    node.settled().await;
    sleep(100).await;
    assert_eq!(node.store.watch_count(), 1);
    node.registry.unregister("web", "1");
    node.settled().await;
    sleep(100).await;
    assert_eq!(node.store.watch_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_revoked_at_once_where_the_store_can_be_told() {
    let node = Node::open().await;
    node.register("1");
    node.settled().await;
    node.client.env().jump(Duration::from_secs(15));
    assert_eq!(soon(node.session.lost(1)).await, LossReason::ClockJumped);
    // Before the next lease is asked for, and long before the old one ends by itself.
    sleep(500).await;
    assert!(node.session.lease().is_none() && !node.is_there("1").await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_that_the_store_was_not_told_of_is_revoked_when_it_is_back() {
    let node = Node::open().await;
    let lease = node.session.lease().unwrap();
    let canary = Key::new("/canary").unwrap();
    node.client.create_ephemeral(&canary, "", lease.lease).await.unwrap();
    node.client.faults().cut();
    node.client.env().jump(Duration::from_secs(15));
    assert_eq!(soon(node.session.lost(1)).await, LossReason::ClockJumped);
    sleep(100).await;
    assert!(node.other.get(&canary).await.unwrap().is_some(), "the store keeps it");
    node.client.faults().heal();
    assert_eq!(soon(node.session.connected()).await.unwrap().epoch, 2);
    sleep(100).await;
    assert!(node.other.get(&canary).await.unwrap().is_none());
}
