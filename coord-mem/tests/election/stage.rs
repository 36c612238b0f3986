//! A store and candidates to play single scenes with, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Backoff, Coordinator, Election, ElectionConfig, Entry, Env, Key, Leadership, Operation, Recipe, Result, Session,
    SessionConfig, Strategy, Task,
};
use coord_mem::{Faults, MemStore};
use coord_recipes_tests::Spy;

pub(crate) const TTL: Duration = Duration::from_secs(4);
/// Longer than anything that is to happen takes.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// One election, on a store of its own.
pub(crate) struct Stage {
    pub(crate) env: Env,
    pub(crate) store: MemStore,
    pub(crate) key: Key,
    pub(crate) recipe: Recipe,
    /// Takes no part.
    pub(crate) client: Arc<dyn Coordinator>,
}

/// One candidate, and the hand on its switches.
pub(crate) struct Actor {
    pub(crate) env: Env,
    pub(crate) faults: Faults,
    pub(crate) spy: Arc<Spy>,
    pub(crate) session: Session,
    pub(crate) election: Arc<Election>,
}

/// Plays a scene with each recipe.
pub(crate) fn with_both(scene: impl AsyncFn(Stage)) {
    with(Recipe::Sequence, &scene);
    with(Recipe::Cas, &scene);
}

/// Plays a scene in virtual time.
pub(crate) fn with(recipe: Recipe, scene: impl AsyncFn(Stage)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let env = Env::simulated(1);
        let store = MemStore::new(&env);
        let stage = Stage {
            key: Key::new("/election").unwrap(),
            client: store.client(),
            env,
            store,
            recipe,
        };
        scene(stage).await;
    });
}

impl Stage {
    pub(crate) fn actor(&self, name: &str) -> Actor {
        let client = self.store.client();
        let (env, faults) = (client.env().clone(), client.faults());
        let spy = Spy::new(client);
        let backoff = Backoff {
            strategy: Strategy::Constant {
                delay: Duration::from_millis(300),
            },
            ..Backoff::default()
        };
        let config = SessionConfig {
            name: name.to_owned(),
            ttl: TTL,
            backoff,
        };
        let session = Session::open(spy.clone(), config).unwrap();
        let election = Arc::new(Election::new(&session, self.config(name)));
        Actor {
            env,
            faults,
            spy,
            session,
            election,
        }
    }

    pub(crate) fn config(&self, name: &str) -> ElectionConfig {
        ElectionConfig {
            recipe: self.recipe,
            ..ElectionConfig::new(self.key.clone(), name)
        }
    }

    /// The candidates' entries, the first created first.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let mut entries = match self.recipe {
            Recipe::Sequence => self.client.children(&self.key).await.unwrap(),
            Recipe::Cas => self.client.get(&self.key).await.unwrap().into_iter().collect(),
        };
        entries.sort_by_key(|entry| entry.created);
        entries
    }

    /// Lets things settle: every message arrives at once, so that a moment is enough.
    pub(crate) async fn moment(&self) {
        self.env.sleep(Duration::from_millis(100)).await;
    }

    pub(crate) async fn in_time<F: Future>(&self, what: &str, future: F) -> F::Output {
        let output = self.env.timeout_at(self.env.now() + LONG, future).await;
        output.unwrap_or_else(|| panic!("{:?}: {what} takes too long", self.recipe))
    }
}

impl Actor {
    /// A campaign in a task of its own.
    pub(crate) fn campaign(&self) -> Task<Result<Leadership>> {
        let election = self.election.clone();
        self.env.spawn(async move { election.campaign().await })
    }

    pub(crate) async fn lead(&self) -> Leadership {
        self.election.campaign().await.unwrap()
    }

    pub(crate) fn writes(&self) -> usize {
        let of = |operation| self.spy.calls(operation).len();
        of(Operation::Create) + of(Operation::Update) + of(Operation::Delete) + of(Operation::Abandon)
    }
}
