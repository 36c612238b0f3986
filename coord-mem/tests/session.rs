//! The scenarios of the recipes in virtual time, and what only a store in memory can show.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, Env, LeaseId};
use coord_mem::{Faults, MemStore, StoreOptions};
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
