//! One store, one network, several nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_api::{Coordinator, Env, Key, Task};
use coord_bootstrap::{Bootstrap, Config, Reform};
use coord_cluster::sim::Network;
use coord_mem::{Faults, MemStore, Odds, StoreOptions};
use tokio::sync::broadcast::error::RecvError;

use crate::network::Net;
use crate::witness::{Seen, Witness};

pub(crate) const TTL: Duration = Duration::from_secs(4);
pub(crate) const REFORM_AFTER: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) env: Env,
    pub(crate) store: MemStore,
    pub(crate) net: Net,
    pub(crate) config: Config,
    pub(crate) oracle: Arc<dyn Coordinator>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    log: Arc<Mutex<Vec<String>>>,
    odds: Option<Odds>,
}

/// One node: the hands on its switches, and its present life.
pub(crate) struct Node {
    pub(crate) bootstrap: Option<Bootstrap>,
    pub(crate) faults: Faults,
    pub(crate) env: Env,
    _scribe: Task,
}

// === impl World ===

impl World {
    pub(crate) fn new(env: Env, network: Network) -> World {
        let options = StoreOptions {
            call_deadline: Duration::from_secs(2),
            ..StoreOptions::default()
        };
        let store = MemStore::with_options(&env, options);
        let config = Config {
            reform: Reform::After(REFORM_AFTER),
            down_after: Some(Duration::from_secs(5)),
            ..Config::new(Key::new("/orders").unwrap(), TTL)
        };
        World {
            net: Net::new(&env, network, coord_cluster::Config::default()),
            oracle: store.client(),
            store,
            env,
            config,
            nodes: vec![],
            seen: Arc::default(),
            log: Arc::default(),
            odds: None,
        }
    }

    /// The calls of nodes that start from now on meet these faults.
    pub(crate) fn set_odds(&mut self, odds: Odds) {
        self.odds = Some(odds);
    }

    /// One more node, started.
    pub(crate) fn add(&mut self) -> usize {
        let number = self.net.add();
        let node = self.begin_with(number, self.config.clone());
        self.nodes.push(node);
        number
    }

    pub(crate) fn add_with(&mut self, config: Config) -> usize {
        let number = self.net.add();
        let node = self.begin_with(number, config);
        self.nodes.push(node);
        number
    }

    pub(crate) fn begin_with(&self, number: usize, config: Config) -> Node {
        let client = self.store.client();
        let (faults, env) = (client.faults(), client.env().clone());
        if let Some(odds) = self.odds {
            faults.seeded(odds);
        }
        let node = self.net.node(number);
        let who = {
            let node = node.clone();
            move || {
                let view = coord_bootstrap::Cluster::view(&*node);
                (view.self_node.to_string(), view.cluster)
            }
        };
        let witness = Witness {
            inner: client,
            oracle: self.oracle.clone(),
            prefix: self.config.prefix.clone(),
            who: Arc::new(who),
            seen: self.seen.clone(),
        };
        let bootstrap = Bootstrap::start(Arc::new(witness), node, config).unwrap();
        let (mut events, log, clock) = (bootstrap.events(), self.log.clone(), self.env.clone());
        let scribe = self.env.spawn(async move {
            loop {
                match events.recv().await {
                    Ok(event) => note(&log, &clock, &format!("{number} {event:?}")),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
        Node {
            bootstrap: Some(bootstrap),
            faults,
            env,
            _scribe: scribe,
        }
    }

    pub(crate) fn note(&self, what: &str) {
        note(&self.log, &self.env, what);
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// How often this event was told, by whomever.
    pub(crate) fn told(&self, what: &str) -> usize {
        self.log
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.contains(what))
            .count()
    }

    pub(crate) fn alive(&self, node: usize) -> bool {
        self.nodes[node].bootstrap.is_some()
    }

    /// Ends a node as kill -9 does.
    pub(crate) fn crash(&mut self, node: usize) {
        // What a dropped leadership does in the background must not reach the store: the dead write nothing.
        self.nodes[node].faults.cut();
        self.nodes[node].bootstrap = None;
        self.net.with(|sim| sim.crash(node));
    }

    /// Starts a node again at its address.
    pub(crate) fn restart(&mut self, node: usize) {
        if self.alive(node) {
            self.crash(node);
        }
        self.net.restart(node);
        self.nodes[node] = self.begin_with(node, self.config.clone());
    }

    /// Stops a node in its tracks for a while.
    pub(crate) fn pause(&self, node: usize, pause: Duration) {
        self.net.with(|sim| sim.pause(node, pause));
        self.nodes[node].env.pause();
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.env.sleep(time).await;
    }
}

fn note(log: &Mutex<Vec<String>>, env: &Env, what: &str) {
    let line = format!("{:9.3} {what}", env.now().since_start().as_secs_f64());
    log.lock().unwrap().push(line);
}

/// A runtime of its own for each life, with virtual time.
pub(crate) fn in_virtual_time<T>(life: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(life)
}
