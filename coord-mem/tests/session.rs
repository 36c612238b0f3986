//! The scenarios of the recipes in virtual time, and what only a store in memory can show.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{
    Coordinator, Directory, Env, Expect, Key, LeaseId, LossReason, Operation, Registration, Registry, RegistryConfig,
    Session, SessionConfig,
};
use coord_mem::{Fault, Faults, GiveUp, MemStore, Odds, StoreOptions};
use coord_recipes_tests::{SCENARIOS, World};

/// One store in memory; what happens to the server happens to all its clients.
struct MemWorld {
    store: MemStore,
    faults: Mutex<Vec<Faults>>,
}

impl MemWorld {
    fn new(seed: u64, options: StoreOptions) -> Arc<MemWorld> {
        Arc::new(MemWorld {
            store: MemStore::with_options(&Env::simulated(seed), options),
            faults: Mutex::default(),
        })
    }

    fn each(&self, act: impl Fn(&Faults)) {
        self.faults.lock().unwrap().iter().for_each(act);
    }
}

#[async_trait]
impl World for MemWorld {
    async fn open(&self) -> Arc<dyn Coordinator> {
        let client = self.store.client();
        self.faults.lock().unwrap().push(client.faults());
        client
    }

    async fn open_movable(&self) -> Arc<dyn Coordinator> {
        self.open().await
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(15)
    }

    fn tolerance(&self) -> Duration {
        Duration::from_millis(5)
    }

    async fn stop(&self) {
        self.each(Faults::cut);
    }

    async fn start(&self) {
        self.each(Faults::heal);
    }

    async fn pause(&self) {
        self.each(Faults::swallow);
    }

    async fn resume(&self) {
        self.each(Faults::heal);
    }

    async fn swallow(&self) {
        self.each(Faults::swallow);
    }

    async fn heal(&self) {
        self.each(Faults::heal);
    }

    async fn revoke(&self, lease: LeaseId) {
        self.faults.lock().unwrap()[0].end_lease(lease);
    }
}

async fn run_all(options: StoreOptions) {
    for (seed, scenario) in SCENARIOS.iter().enumerate() {
        println!("{}", scenario.name);
        let world = MemWorld::new(seed as u64, options);
        let limit = Duration::from_secs(3600);
        let run = tokio::time::timeout(limit, scenario.run(world));
        assert!(run.await.is_ok(), "{} hangs", scenario.name);
    }
}

#[tokio::test(start_paused = true)]
async fn the_scenarios_hold() {
    run_all(StoreOptions::default()).await;
}

#[tokio::test(start_paused = true)]
async fn the_scenarios_hold_where_the_proof_lags() {
    let options = StoreOptions {
        proof_lag: Duration::from_secs(3),
        ..StoreOptions::default()
    };
    run_all(options).await;
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Fails instead of hanging.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(seconds(3600), future).await.expect("it hangs")
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_read_too_late_revives_nothing() {
    let store = MemStore::new(&Env::simulated(1));
    let client = store.client();
    let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
    let lease = session.connected().await.unwrap();
    client.faults().next(Operation::Renew, Fault::DelayAnswer(seconds(1)));
    // The renewal is under way when the process stops; its answer comes, and waits.
    tokio::time::sleep(Duration::from_millis(5500)).await;
    client.faults().pause();
    assert_eq!(soon(session.lost(lease.epoch)).await, LossReason::ClockJumped);
    client.faults().resume();
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(
            session.lease().is_none_or(|now| now.epoch > lease.epoch),
            "{:?}",
            session.state()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_the_own_older_epoch_is_replaced_at_once() {
    let store = MemStore::new(&Env::simulated(1));
    let (client, reader) = (store.client(), store.client());
    let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
    let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
    registry.register(Registration::new("web", "1", "x")).unwrap();
    soon(registry.settled()).await.unwrap();
    let before = Directory::new(reader.clone()).list("web").await.unwrap();
    // The client's clock jumps; the store keeps the old lease, and does not hear that it is given up.
    for _ in 0..2 {
        client
            .faults()
            .next(Operation::Revoke, Fault::LoseRequest(GiveUp::AtDeadline));
    }
    client.env().jump(seconds(15));
    assert_eq!(soon(session.lost(1)).await, LossReason::ClockJumped);
    soon(session.connected()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let after = Directory::new(reader).list("web").await.unwrap();
    assert!(after.len() == 1 && after[0].created > before[0].created, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn dropping_without_close_leaks_no_task_and_no_watch() {
    let store = MemStore::new(&Env::simulated(1));
    let client = store.client();
    let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
    let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
    let view = Directory::new(client.clone()).view("web").unwrap();
    registry.register(Registration::new("web", "1", "x")).unwrap();
    soon(registry.settled()).await.unwrap();
    tokio::time::sleep(seconds(1)).await;
    assert!(store.watch_count() >= 2);
    drop((session, registry, view));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(store.watch_count(), 0);
    // The store's own timer is the one task that is left.
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
    assert_eq!(Arc::strong_count(&client), 1);
    tokio::time::sleep(seconds(20)).await;
    let left = Directory::new(client).list("web").await.unwrap();
    assert_eq!(left, [], "nobody renews: the entry ends with its lease");
}

#[tokio::test(start_paused = true)]
async fn closing_a_registry_while_the_store_is_down_ends_by_its_deadline() {
    let store = MemStore::new(&Env::simulated(1));
    let client = store.client();
    let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
    let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
    registry.register(Registration::new("web", "1", "x")).unwrap();
    soon(registry.settled()).await.unwrap();
    client.faults().swallow();
    let before = client.env().now();
    assert!(soon(registry.close()).await.is_err());
    assert!(client.env().now() - before <= client.capabilities().call_deadline);
    assert!(registry.register(Registration::new("web", "2", "x")).is_err());
    assert!(soon(registry.settled()).await.is_err());
    soon(registry.close()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_entries_are_put_back_within_the_pipeline_and_renewals_do_not_grow() {
    let store = MemStore::new(&Env::simulated(1));
    let client = store.client();
    let spy = coord_recipes_tests::Spy::new(client.clone());
    let session = Session::open(spy.clone(), SessionConfig::default()).unwrap();
    let registry = Registry::open(session.clone(), RegistryConfig::new("a")).unwrap();
    for id in 0..10_000 {
        registry
            .register(Registration::new("web", id.to_string(), "x"))
            .unwrap();
    }
    soon(registry.settled()).await.unwrap();
    let (creates, renewals) = (spy.calls(Operation::Create).len(), spy.calls(Operation::Renew).len());
    tokio::time::sleep(seconds(150)).await;
    let per_ttl = (spy.calls(Operation::Renew).len() - renewals) as f64 / 10.0;
    assert!((2.9..=3.1).contains(&per_ttl), "{per_ttl} renewals per ttl");
    client.faults().end_lease(session.lease().unwrap().lease);
    soon(session.lost(1)).await;
    // From now on a create takes its time, so that many are under way at once: as many as there may be, and no more.
    client.faults().seeded(Odds {
        delay: 1.0,
        longest: Duration::from_millis(10),
        ..Odds::default()
    });
    soon(session.connected()).await.unwrap();
    soon(registry.settled()).await.unwrap();
    client.faults().clear();
    assert_eq!(spy.most_at_once(), RegistryConfig::new("a").pipeline);
    let again = spy.calls(Operation::Create).len() - creates;
    assert!((10_000..=10_100).contains(&again), "{again} creates to put 10,000 back");
    assert!(spy.calls(Operation::Get).len() < 100, "no look before each");
    assert_eq!(Directory::new(client).list("web").await.unwrap().len(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn an_entry_in_doubt_stays_on_its_full_lease() {
    let store = MemStore::new(&Env::simulated(1));
    let (client, other) = (store.client(), store.client());
    let spy = coord_recipes_tests::Spy::with_limit(client, 2);
    let session = Session::open(spy.clone(), SessionConfig::default()).unwrap();
    let registry = Registry::open(session, RegistryConfig::new("a")).unwrap();
    for id in ["1", "2"] {
        registry.register(Registration::new("web", id, "x")).unwrap();
    }
    soon(registry.settled()).await.unwrap();
    let key = Key::new("/services/web/1").unwrap();
    let before = other.get(&key).await.unwrap().unwrap();
    let wrong = String::from_utf8(before.value.to_vec()).unwrap().replace('x', "y");
    other.update(&key, wrong.into(), Expect::Any).await.unwrap();
    tokio::time::sleep(seconds(1)).await;
    soon(registry.settled()).await.unwrap();
    let after = other.get(&key).await.unwrap().unwrap();
    assert_eq!(
        (&after.value, after.created, after.lease),
        (&before.value, before.created, before.lease)
    );
    assert_eq!(spy.calls(Operation::Grant).len(), 1);
}
