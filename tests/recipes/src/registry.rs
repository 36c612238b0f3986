use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Bytes, Coordinator, CoordinatorExt, Directory, Entry, Env, Expect, Key, Operation, Registration, Registry,
    RegistryConfig, Session, Status,
};

use crate::{Spy, World, session};

fn key() -> Key {
    Key::new("/services/web/1").unwrap()
}

fn web() -> Registration {
    Registration::new("web", "1", "10.0.0.1:80").with("zone", "a")
}

struct Node {
    spy: Arc<Spy>,
    session: Session,
    registry: Registry,
}

impl Node {
    async fn open(world: &dyn World, owner: &str) -> Node {
        Node::with_limit(world, owner, usize::MAX).await
    }

    async fn with_limit(world: &dyn World, owner: &str, limit: usize) -> Node {
        let spy = Spy::with_limit(world.open().await, limit);
        let session = session::open(world, spy.clone());
        let registry = Registry::open(session.clone(), RegistryConfig::new(owner)).unwrap();
        Node { spy, session, registry }
    }

    fn env(&self) -> &Env {
        self.spy.env()
    }

    async fn close(self) {
        self.registry.close().await.unwrap();
        self.session.close().await.unwrap();
    }
}

/// Looks until it is so; panics when it takes longer than anything here should.
async fn eventually(what: &str, reader: &Arc<dyn Coordinator>, key: &Key, so: impl Fn(Option<&Entry>) -> bool) {
    let env = reader.env();
    let give_up = env.now() + Duration::from_secs(60);
    loop {
        if let Ok(found) = reader.get_latest(key).await
            && so(found.as_ref())
        {
            return;
        }
        assert!(env.now() < give_up, "in vain: {what}");
        env.sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn a_registration_persists_over_many_ttls(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let reader = world.open().await;
    node.registry.register(web()).unwrap();
    node.registry.settled().await.unwrap();
    let entry = reader.get_latest(&key()).await.unwrap().unwrap();
    for _ in 0..4 {
        node.env().sleep(world.ttl()).await;
        assert_eq!(reader.get_latest(&key()).await.unwrap().as_ref(), Some(&entry));
    }
    assert_eq!(node.registry.status("web", "1"), Some(Status::Registered));
    let list = Directory::new(reader.clone()).list("web").await.unwrap();
    assert_eq!(
        (list.len(), &*list[0].address, &*list[0].metadata["zone"]),
        (1, "10.0.0.1:80", "a")
    );
    node.close().await;
    assert_eq!(reader.get_latest(&key()).await.unwrap(), None);
}

pub(crate) async fn unregister_stops_cleanly(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let reader = world.open().await;
    node.registry.register(web()).unwrap();
    node.registry.settled().await.unwrap();
    assert!(node.registry.unregister("web", "1"));
    assert!(!node.registry.unregister("web", "1"));
    node.registry.settled().await.unwrap();
    assert_eq!(reader.get_latest(&key()).await.unwrap(), None, "gone at once");
    node.env().sleep(world.ttl() * 2).await;
    assert_eq!(reader.get_latest(&key()).await.unwrap(), None, "and stays away");
    assert_eq!(node.registry.status("web", "1"), None);
    node.close().await;
}

pub(crate) async fn registering_twice_is_one_entry(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let reader = world.open().await;
    for _ in 0..3 {
        node.registry.register(web()).unwrap();
    }
    node.registry.settled().await.unwrap();
    let first = reader.get_latest(&key()).await.unwrap().unwrap();
    node.registry.register(web()).unwrap();
    node.registry.settled().await.unwrap();
    assert_eq!(reader.get_latest(&key()).await.unwrap(), Some(first.clone()));
    // Other facts: the same entry, updated.
    node.registry.update(web().with("zone", "b")).unwrap();
    node.registry.settled().await.unwrap();
    let updated = reader.get_latest(&key()).await.unwrap().unwrap();
    assert_eq!(updated.created, first.created);
    assert_eq!(node.spy.calls(Operation::Update).len(), 1, "one write for one change");
    assert!(String::from_utf8_lossy(&updated.value).contains(r#""zone":"b""#));
    assert!(
        node.registry.update(Registration::new("web", "2", "")).is_err(),
        "not registered"
    );
    assert_eq!(node.registry.len(), 1);
    node.close().await;
}

pub(crate) async fn a_store_that_is_down_at_start_gets_everything_later(world: Arc<dyn World>) {
    let coordinator = world.open().await;
    world.stop().await;
    let session = session::open(&*world, coordinator);
    let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
    registry.register(web()).unwrap();
    session.coordinator().env().sleep(Duration::from_secs(3)).await;
    assert!(matches!(registry.status("web", "1"), Some(Status::Pending { .. })));
    world.start().await;
    registry.settled().await.unwrap();
    assert_eq!(registry.status("web", "1"), Some(Status::Registered));
    registry.close().await.unwrap();
    session.close().await.unwrap();
}

pub(crate) async fn an_outage_puts_back_the_desired_state(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let reader = world.open().await;
    let services = |id: &str| Key::new(format!("/services/web/{id}")).unwrap();
    for id in ["1", "2", "3"] {
        node.registry.register(Registration::new("web", id, "old")).unwrap();
    }
    node.registry.settled().await.unwrap();
    let lease = node.session.lease().unwrap();
    world.stop().await;
    node.session.lost(lease.epoch).await;
    node.registry.unregister("web", "2");
    node.registry.update(Registration::new("web", "3", "new")).unwrap();
    node.registry.register(Registration::new("web", "4", "new")).unwrap();
    node.env().sleep(world.ttl()).await;
    world.start().await;
    node.session.connected().await.unwrap();
    node.registry.settled().await.unwrap();
    let list = Directory::new(reader.clone()).list("web").await.unwrap();
    let list: Vec<_> = list
        .iter()
        .map(|instance| (&*instance.id, &*instance.address))
        .collect();
    assert_eq!(list, [("1", "old"), ("3", "new"), ("4", "new")]);
    let now = node.session.lease().unwrap().lease;
    for id in ["1", "3", "4"] {
        let entry = reader.get_latest(&services(id)).await.unwrap().unwrap();
        assert_eq!(entry.lease, Some(now), "under the lease that lives");
    }
    node.env().sleep(world.ttl() * 2).await;
    assert_eq!(Directory::new(reader).list("web").await.unwrap().len(), 3);
    node.close().await;
}

pub(crate) async fn a_deleted_entry_is_put_back(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let other = world.open().await;
    node.registry.register(web()).unwrap();
    node.registry.settled().await.unwrap();
    for _ in 0..3 {
        let before = other.get_latest(&key()).await.unwrap().unwrap();
        other.delete(&key(), Expect::Any).await.unwrap();
        eventually("the entry is put back", &other, &key(), |entry| {
            entry.is_some_and(|entry| entry.created > before.created && entry.value == before.value)
        })
        .await;
    }
    node.close().await;
}

pub(crate) async fn an_overwritten_entry_is_put_right(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let other = world.open().await;
    node.registry.register(web()).unwrap();
    node.registry.settled().await.unwrap();
    let before = other.get_latest(&key()).await.unwrap().unwrap();
    let wrong = String::from_utf8(before.value.to_vec())
        .unwrap()
        .replace("10.0.0.1", "6.6.6.6");
    other.update(&key(), Bytes::from(wrong), Expect::Any).await.unwrap();
    eventually("the entry is put right", &other, &key(), |entry| {
        entry.is_some_and(|entry| entry.value == before.value)
    })
    .await;
    node.close().await;
}

pub(crate) async fn the_own_older_incarnation_is_replaced_at_once(world: Arc<dyn World>) {
    let old = Node::open(&*world, "same").await;
    let reader = world.open().await;
    old.registry.register(web()).unwrap();
    old.registry
        .register(Registration::new("web", "2", "not again"))
        .unwrap();
    old.registry.settled().await.unwrap();
    let before = reader.get_latest(&key()).await.unwrap().unwrap();
    // It dies without a word: its lease lives on for a while.
    drop(old.registry);
    drop(old.session);
    let new = Node::open(&*world, "same").await;
    let started = new.env().now();
    new.registry.register(web()).unwrap();
    new.registry.settled().await.unwrap();
    let after = reader.get_latest(&key()).await.unwrap().unwrap();
    assert!(after.created > before.created && after.lease == new.session.lease().map(|lease| lease.lease));
    assert!(new.env().now() - started < world.ttl() / 2, "at once, not by the ttl");
    // What it does not register again goes, too.
    let second = Key::new("/services/web/2").unwrap();
    eventually("the old one is purged", &reader, &second, |entry| entry.is_none()).await;
    assert!(new.env().now() - started < world.ttl() / 2, "at once, not by the ttl");
    new.close().await;
}

pub(crate) async fn another_owners_live_entry_is_never_stolen(world: Arc<dyn World>) {
    let (holder, rival) = (Node::open(&*world, "a").await, Node::open(&*world, "b").await);
    let reader = world.open().await;
    holder.registry.register(web()).unwrap();
    holder.registry.settled().await.unwrap();
    let held = reader.get_latest(&key()).await.unwrap().unwrap();
    rival.registry.register(Registration::new("web", "1", "rival")).unwrap();
    rival.registry.settled().await.unwrap();
    let taken = |status| matches!(status, Some(Status::Taken { owner, .. }) if owner == "a");
    assert!(taken(rival.registry.status("web", "1")));
    rival.env().sleep(world.ttl() * 2).await;
    assert_eq!(reader.get_latest(&key()).await.unwrap(), Some(held));
    // When it goes, the one who waits gets it; and unregistering does not touch what is not one's own.
    holder.registry.unregister("web", "1");
    eventually("the rival gets it", &reader, &key(), |entry| {
        entry.is_some_and(|entry| String::from_utf8_lossy(&entry.value).contains("rival"))
    })
    .await;
    holder.registry.register(web()).unwrap();
    holder.registry.settled().await.unwrap();
    holder.close().await;
    assert!(reader.get_latest(&key()).await.unwrap().is_some(), "the rival's stays");
    rival.close().await;
}

pub(crate) async fn entries_spread_over_further_leases_when_one_is_full(world: Arc<dyn World>) {
    let node = Node::with_limit(&*world, "a", 4).await;
    let reader = world.open().await;
    for id in 0..10 {
        node.registry
            .register(Registration::new("web", id.to_string(), "x"))
            .unwrap();
    }
    node.registry.settled().await.unwrap();
    assert_eq!(Directory::new(reader.clone()).list("web").await.unwrap().len(), 10);
    assert_eq!((node.spy.calls(Operation::Grant).len(), node.spy.fullest()), (3, 4));
    node.env().sleep(world.ttl() * 2).await;
    assert_eq!(Directory::new(reader.clone()).list("web").await.unwrap().len(), 10);
    // The further leases go with the registry.
    node.close().await;
    assert_eq!(Directory::new(reader).list("web").await.unwrap().len(), 0);
}

pub(crate) async fn a_view_follows_without_a_gap(world: Arc<dyn World>) {
    let node = Node::open(&*world, "a").await;
    let reader = world.open().await;
    let mut view = Directory::new(reader.clone()).view("web").unwrap();
    node.registry.register(web()).unwrap();
    view.wait_for(|web| web.contains_key("1")).await.unwrap();
    node.registry.update(web().with("zone", "b")).unwrap();
    view.wait_for(|web| web["1"].metadata["zone"] == "b").await.unwrap();
    let created = view.now().unwrap()["1"].created;
    // Somebody who is no registry is not an instance.
    let stranger = Key::new("/services/web/stranger").unwrap();
    reader.create_persistent(&stranger, "hello").await.unwrap();
    world.stop().await;
    node.session.lost(1).await;
    assert!(view.now().is_some(), "it shows what it knew");
    node.env().sleep(world.ttl()).await;
    world.start().await;
    let healed = view
        .wait_for(|web| web.get("1").is_some_and(|one| one.created > created))
        .await;
    assert_eq!(healed.unwrap().len(), 1);
    node.registry.unregister("web", "1");
    view.wait_for(|web| web.is_empty()).await.unwrap();
    node.close().await;
}
