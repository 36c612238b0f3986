use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Entry, Key};
use coord_bootstrap::{Bootstrap, Config, Event, Reform};
use coord_cluster::{ClusterNode, DetectorConfig, Phase, Settings};
use coord_harness::eventually;
use tokio::sync::broadcast;

/// The shortest lease that all stores grant as asked for.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// Far beyond what anything here takes, so that a slow machine does not fail a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// One prefix of one store.
pub(crate) struct Stage {
    pub(crate) prefix: Key,
    /// What the nodes use.
    pub(crate) coordinator: Arc<dyn Coordinator>,
    /// What the test looks and meddles with.
    pub(crate) operator: Arc<dyn Coordinator>,
}

/// One real node.
pub(crate) struct Actor {
    pub(crate) node: Arc<ClusterNode>,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) events: broadcast::Receiver<Event>,
}

// === impl Stage ===

impl Stage {
    pub(crate) fn new(name: &str, coordinator: Arc<dyn Coordinator>, operator: Arc<dyn Coordinator>) -> Stage {
        Stage {
            prefix: Key::root().child(name).unwrap(),
            coordinator,
            operator,
        }
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            reform: Reform::After(Duration::from_secs(4)),
            down_after: Some(Duration::from_secs(2)),
            wait_max: Duration::from_secs(1),
            join_timeout: Duration::from_secs(1),
            ..Config::new(self.prefix.clone(), TTL)
        }
    }

    /// A membership node that is told nothing.
    pub(crate) async fn node(&self) -> Arc<ClusterNode> {
        let mut settings = Settings::new("127.0.0.1:0".parse().unwrap());
        settings.config = coord_cluster::Config {
            gossip_interval: Duration::from_millis(200),
            fast_interval: Duration::from_millis(50),
            heartbeat_interval: Duration::from_millis(200),
            detector: DetectorConfig {
                acceptable_pause: Duration::from_millis(2000),
                first_interval: Duration::from_millis(200),
                ..DetectorConfig::default()
            },
            rejoin: false,
            ..coord_cluster::Config::default()
        };
        Arc::new(ClusterNode::start(settings).await.unwrap())
    }

    pub(crate) async fn actor(&self) -> Actor {
        self.actor_with(self.config()).await
    }

    pub(crate) async fn actor_with(&self, config: Config) -> Actor {
        let node = self.node().await;
        let bootstrap = Bootstrap::start(self.coordinator.clone(), node.clone(), config).unwrap();
        Actor {
            events: bootstrap.events(),
            node,
            bootstrap,
        }
    }

    /// So many nodes, one after the other, all of them up.
    pub(crate) async fn cluster(&self, size: usize) -> Vec<Actor> {
        let mut actors = vec![];
        for count in 1..=size {
            actors.push(self.actor().await);
            self.whole(&actors[..count]).await;
        }
        actors
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        self.prefix.child(name).unwrap()
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Entry> {
        self.operator.get_latest(&self.key(name)).await.unwrap()
    }

    /// The values below `seeds`.
    pub(crate) async fn seeds(&self) -> Vec<String> {
        // Lists are no older than this.
        self.get("seeds").await;
        let entries = self.operator.children(&self.key("seeds")).await.unwrap();
        entries
            .iter()
            .map(|entry| String::from_utf8_lossy(&entry.value).into_owned())
            .collect()
    }

    /// Waits until exactly these are advertised.
    pub(crate) async fn advertised(&self, actors: &[&Actor]) {
        eventually(LONG, "the seeds are the truth", async || {
            let seeds = self.seeds().await;
            let all = actors.iter().all(|actor| seeds.iter().any(|seed| names(seed, actor)));
            (all && seeds.len() == actors.len())
                .then_some(())
                .ok_or(format!("{seeds:?}"))
        })
        .await;
    }

    /// Waits until these are one converged cluster of exactly them.
    pub(crate) async fn whole(&self, actors: &[Actor]) {
        let actors: Vec<&Actor> = actors.iter().collect();
        whole(&actors).await;
    }

    /// Waits until this one holds the leader's entry.
    pub(crate) async fn led_by(&self, actor: &Actor) -> Entry {
        eventually(LONG, "the leader's entry", async || {
            let entry = self.get("leader").await.ok_or("nobody")?;
            let value = String::from_utf8_lossy(&entry.value).into_owned();
            if names(&value, actor) { Ok(entry) } else { Err(value) }
        })
        .await
    }
}

/// Whether an entry names this node in this life.
pub(crate) fn names(value: &str, actor: &Actor) -> bool {
    let me = actor.node.self_node();
    value.contains(&me.address.to_string()) && value.contains(&me.incarnation.to_string())
}

pub(crate) async fn whole(actors: &[&Actor]) {
    eventually(LONG, "one converged cluster", async || {
        let first = actors[0].node.view();
        let mut missing = vec![];
        for actor in actors {
            let view = actor.node.view();
            let is = view.phase == Phase::Member
                && view.cluster == first.cluster
                && view.converged
                && view.members.len() == actors.len()
                && view.up().count() == actors.len();
            if !is || actor.bootstrap.state().record().is_none() {
                missing.push(format!("{view:?} {:?}", actor.bootstrap.state()));
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing.join("\n"))
        }
    })
    .await;
}

// === impl Actor ===

impl Actor {
    pub(crate) fn cluster(&self) -> coord_cluster::ClusterId {
        self.node.view().cluster
    }

    /// Whether it ever was elected.
    pub(crate) fn has_formed(&mut self) -> bool {
        std::iter::from_fn(|| self.events.try_recv().ok()).any(|event| matches!(event, Event::Formed { .. }))
    }
}
