use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Instant, Result, Task};
use tokio::sync::{broadcast, watch};

use crate::run::Runner;
use crate::{Cluster, Config, End, Event, Record, State};

/// How many events a slow reader may fall behind before it skips some.
const EVENTS: usize = 256;

/// A node on its way into its cluster, and in it. Dropping it ends its task at once: nothing is written any more, and the
/// leader's entry, if held, ends by its ttl. [`leave`](Bootstrap::leave) is the polite way.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use coord_api::{Env, Key};
/// use coord_bootstrap::{Bootstrap, Config};
/// use coord_cluster::{ClusterNode, Settings};
/// use coord_mem::MemStore;
///
/// // The store: here in memory; `coord-etcd` and `coord-zk` give the same.
/// let store = MemStore::new(&Env::tokio());
/// let mut settings = Settings::new("127.0.0.1:0".parse()?);
/// settings.config.rejoin = false;
/// let node = Arc::new(ClusterNode::start(settings).await?);
///
/// let config = Config::new(Key::new("/orders")?, Duration::from_secs(10));
/// let bootstrap = Bootstrap::start(store.client(), node.clone(), config)?;
/// let record = bootstrap.joined().await?;
/// assert_eq!((record.generation, record.cluster), (1, node.view().cluster));
/// bootstrap.leave(Duration::from_secs(10)).await;
/// # Ok(())
/// # }
/// ```
pub struct Bootstrap {
    shared: Arc<Shared>,
    /// By when to have left, once somebody wants that.
    leave: watch::Sender<Option<Instant>>,
    env: Env,
    _task: Task,
}

/// What the handle and the task share.
pub(crate) struct Shared {
    state: watch::Sender<State>,
    events: broadcast::Sender<Event>,
}

/// There will be no cluster: how it ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("in no cluster: {0}")]
pub struct NotJoined(pub End);

// === impl Bootstrap ===

impl Bootstrap {
    /// Starts and returns at once, whether the store is up or not. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the configuration cannot work.
    pub fn start(coordinator: Arc<dyn Coordinator>, cluster: Arc<dyn Cluster>, config: Config) -> Result<Bootstrap> {
        let shared = Arc::new(Shared {
            state: watch::Sender::new(State::Looking { attempt: 1 }),
            events: broadcast::Sender::new(EVENTS),
        });
        let (leave, asked) = watch::channel(None);
        let env = coordinator.env().clone();
        let runner = Runner::new(coordinator, cluster, config, shared.clone(), asked)?;
        Ok(Bootstrap {
            _task: env.spawn(runner.run()),
            shared,
            leave,
            env,
        })
    }

    /// Where it is now.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// Where it is now, and every later state (a slow reader sees the latest).
    pub fn watch(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// What happens from here on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// Waits until the node is in a cluster.
    ///
    /// # Errors
    /// When it has ended before.
    pub async fn joined(&self) -> Result<Record, NotJoined> {
        let mut state = self.watch();
        loop {
            match &*state.borrow_and_update() {
                State::Member { record, .. } => return Ok(*record),
                State::Stopped(end) => return Err(NotJoined(end.clone())),
                _ => {}
            }
            if state.changed().await.is_err() {
                return Err(NotJoined(End::NodeStopped));
            }
        }
    }

    /// Leaves gracefully and stops the cluster node, by the deadline in any case: the own seed entry goes, then the node
    /// leaves; whoever is the last removes the record; then the leader's entry is given back.
    ///
    /// A node that is still looking for a cluster stops looking. Dropping the future does not take the request back. Asked
    /// several times, the earliest deadline counts.
    pub async fn leave(&self, within: Duration) -> End {
        let deadline = self.env.now() + within;
        self.leave.send_if_modified(|asked| {
            let earlier = asked.is_none_or(|other| deadline < other);
            if earlier {
                *asked = Some(deadline);
            }
            earlier
        });
        let mut state = self.watch();
        loop {
            if let State::Stopped(end) = &*state.borrow_and_update() {
                return end.clone();
            }
            if state.changed().await.is_err() {
                return End::NodeStopped;
            }
        }
    }
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn set(&self, state: State) {
        self.state.send_if_modified(|now| {
            let changed = *now != state;
            if changed {
                tracing::debug!(%state, "bootstrap");
                *now = state;
            }
            changed
        });
    }

    pub(crate) fn tell(&self, event: Event) {
        match &event {
            Event::Rival { holder } => {
                metrics::counter!("coord_bootstrap_rivals_total").increment(1);
                tracing::error!(
                    holder,
                    "another node holds the leader's entry and does not give it up: a person has to look whether the \
                     cluster is split"
                );
            }
            Event::StoreFailed { error } => tracing::warn!(error, "the store fails"),
            event => tracing::info!(?event, "bootstrap"),
        }
        // Nobody listens: nobody is told.
        let _ = self.events.send(event);
    }
}
