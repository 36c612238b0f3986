//! A thousand random fault schedules. A failure prints its seed; `COORD_SEED=<seed>` runs that one alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Coordinator, CoordinatorExt, Directory, Env, Key, LossReason, Registration, Registry, RegistryConfig, Session,
    SessionConfig, SessionState,
};
use coord_mem::{Fault, MemClient, MemStore, Odds, StoreOptions};

const SCHEDULES: u64 = 1000;
const STEPS: u64 = 60;

struct Node {
    name: &'static str,
    client: Arc<MemClient>,
    session: Session,
    registry: Registry,
    desired: BTreeMap<String, String>,
    /// The epoch whose lease carries the canary; `None` if an operator ended it.
    canary: Option<u64>,
    paused: bool,
}

impl Node {
    fn open(store: &MemStore, name: &'static str) -> Node {
        let client = store.client();
        let session = Session::open(client.clone(), SessionConfig::default()).unwrap();
        let registry = Registry::open(session.clone(), RegistryConfig::new(name)).unwrap();
        Node {
            name,
            client,
            session,
            registry,
            desired: BTreeMap::new(),
            canary: None,
            paused: false,
        }
    }

    fn canary(&self, epoch: u64) -> Key {
        Key::new(format!("/canary/{}-{epoch}", self.name)).unwrap()
    }

    /// Puts a canary under the present lease, so that it can be seen from outside whether the store keeps it.
    async fn place_canary(&mut self) {
        let Some(lease) = self.session.lease().filter(|_| !self.paused) else {
            return;
        };
        if self.canary != Some(lease.epoch) {
            let key = self.canary(lease.epoch);
            if self.client.create_ephemeral(&key, "", lease.lease).await.is_ok() {
                self.canary = Some(lease.epoch);
            }
        }
    }

    /// What the session holds, the store keeps.
    async fn check(&self, observer: &Arc<MemClient>) {
        if let Some(lease) = self.session.lease()
            && Some(lease.epoch) == self.canary
        {
            let alive = observer.get(&self.canary(lease.epoch)).await.unwrap().is_some();
            // The clock may have moved on in between.
            assert!(
                alive || self.session.lease() != Some(lease),
                "{}: {lease:?} is dead at the store",
                self.name
            );
        }
    }

    async fn act(&mut self, env: &Env) {
        let faults = self.client.faults();
        let id = (env.random_u64() % 6).to_string();
        match env.random_u64() % 20 {
            0 => faults.cut(),
            1 => faults.swallow(),
            2..=5 => faults.heal(),
            6 => {
                faults.pause();
                self.paused = true;
            }
            7 | 8 => {
                faults.resume();
                self.paused = false;
            }
            9 => self.client.env().jump(env.random_duration(Duration::from_secs(20))),
            10 => {
                if let Some(lease) = self.session.lease() {
                    self.canary = None;
                    faults.end_lease(lease.lease);
                }
            }
            11 => faults.gap(),
            12 => {
                self.registry.unregister(self.name, &id);
                self.desired.remove(&id);
            }
            13 => {
                let key = Key::new(format!("/services/{}/{id}", self.name)).unwrap();
                faults.next(coord_api::Operation::Delete, Fault::Pass);
                drop(
                    self.client
                        .env()
                        .timeout_at(env.now(), self.client.delete(&key, coord_api::Expect::Any))
                        .await,
                );
            }
            _ => {
                let address = env.random_u64().to_string();
                let registration = Registration::new(self.name, id.clone(), address.clone());
                self.registry.register(registration).unwrap();
                self.desired.insert(id, address);
            }
        }
    }
}

/// Runs one schedule; returns its history.
async fn schedule(seed: u64) -> Vec<String> {
    let env = Env::simulated(seed);
    let lag = Duration::from_secs(seed % 2 * 3);
    let options = StoreOptions {
        proof_lag: lag,
        ..StoreOptions::default()
    };
    let store = MemStore::with_options(&env, options);
    let observer = store.client();
    let mut nodes = [Node::open(&store, "a"), Node::open(&store, "b")];
    let mut history = Vec::new();
    for node in &nodes {
        let odds = 0.02 * (seed % 5) as f64;
        node.client.faults().seeded(Odds {
            not_sent: odds,
            lose_request: odds,
            lose_answer: odds,
            arrive_late: odds,
            delay: odds,
            delay_answer: odds,
            end_lease_early: odds,
            gap: odds,
            longest: Duration::from_secs(8),
        });
    }
    for _ in 0..STEPS {
        env.sleep(env.random_duration(Duration::from_secs(6))).await;
        for node in &mut nodes {
            node.check(&observer).await;
            node.act(&env).await;
            node.check(&observer).await;
            // Its call may take its time; the other one's clock goes on meanwhile.
            drop(tokio::time::timeout(Duration::from_secs(6), node.place_canary()).await);
            history.push(format!("{:?} {:?}", env.now(), node.session.state()));
        }
    }
    // Everything heals, by itself.
    for node in &mut nodes {
        let faults = node.client.faults();
        faults.clear();
        faults.heal();
        faults.resume();
        node.registry.settled().await.unwrap();
        let state = node.session.state();
        assert!(
            matches!(state, SessionState::Connected(_) | SessionState::Suspended { .. }),
            "{state:?}"
        );
    }
    // What an old lease still holds may have to end first.
    env.sleep(Duration::from_secs(40)).await;
    for node in &nodes {
        node.registry.settled().await.unwrap();
        let found = Directory::new(observer.clone()).list(node.name).await.unwrap();
        let found: BTreeMap<_, _> = found.into_iter().map(|one| (one.id, one.address)).collect();
        assert_eq!(found, node.desired, "{}", node.name);
    }
    // And after the close nothing is left.
    for node in nodes {
        let epoch = node.session.lease().unwrap().epoch;
        node.registry.close().await.unwrap();
        node.session.close().await.unwrap();
        assert_eq!(node.session.lost(epoch).await, LossReason::Closed);
        assert_eq!(Directory::new(observer.clone()).list(node.name).await.unwrap(), []);
    }
    assert_eq!(observer.children(&Key::new("/canary").unwrap()).await.unwrap(), []);
    history
}

fn run(seed: u64) -> Vec<String> {
    println!("seed {seed}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let limit = tokio::time::timeout(Duration::from_secs(86_400), schedule(seed));
        limit.await.expect("the schedule hangs")
    })
}

#[test]
fn random_fault_schedules_keep_the_promises() {
    if let Ok(seed) = std::env::var("COORD_SEED") {
        run(seed.parse().expect("COORD_SEED is a number"));
        return;
    }
    for seed in 0..SCHEDULES {
        run(seed);
    }
}

#[test]
fn one_seed_one_history() {
    for seed in 0..100 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
