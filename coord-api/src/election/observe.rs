use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::debug;

use super::pace::Pace;
use super::{Leader, Recipe};
use crate::{Coordinator, Entry, Key, Target, Task, WatchEvent};

/// Who leads, for those who take no part: always the latest, and changes can be awaited.
///
/// The leader shown is the one whose entry comes first; that it has noticed so itself, and is
/// [valid](crate::Leadership::is_valid), only it can tell. While the store cannot be reached, the last known stays.
/// Dropping it ends the watch.
pub struct Observer {
    latest: watch::Receiver<Observation>,
    _task: Task,
}

/// What an [`Observer`] sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Observation {
    /// Nothing yet: the store has not answered.
    #[default]
    Unknown,
    /// Nobody leads.
    NoLeader,
    /// This one leads.
    Leader(Leader),
}

// === impl Observer ===

impl Observer {
    /// Observes the election of `key`. Needs no session. Must be called within a tokio runtime.
    pub fn new(coordinator: Arc<dyn Coordinator>, key: Key, recipe: Recipe) -> Observer {
        let (sender, latest) = watch::channel(Observation::Unknown);
        let env = coordinator.env().clone();
        let task = env.spawn(follow(coordinator, key, recipe, sender));
        Observer { latest, _task: task }
    }

    /// What is known now.
    pub fn current(&self) -> Observation {
        self.latest.borrow().clone()
    }

    /// Waits for something else than was told last, and tells it; `None` once the coordinator is closed.
    pub async fn changed(&mut self) -> Option<Observation> {
        self.latest.changed().await.ok()?;
        Some(self.latest.borrow_and_update().clone())
    }
}

impl Observation {
    /// The leader, if one is known.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Observation::Leader(leader) => Some(leader),
            _ => None,
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("current", &self.current()).finish()
    }
}

async fn follow(coordinator: Arc<dyn Coordinator>, key: Key, recipe: Recipe, latest: watch::Sender<Observation>) {
    let target = match recipe {
        Recipe::Sequence => Target::Children(key.clone()),
        Recipe::Cas => Target::Key(key.clone()),
    };
    let mut pace = Pace::new();
    loop {
        match coordinator.watch(&target).await {
            Ok(mut watch) => {
                pace = Pace::new();
                let mut entries = BTreeMap::new();
                while let Some(event) = watch.next().await {
                    match event {
                        Ok(event) => apply(&mut entries, event),
                        Err(error) if error.is_closed() => return,
                        Err(error) => {
                            debug!(%key, "observer: {error}");
                            break;
                        }
                    }
                    let seen = observe(&entries, recipe);
                    latest.send_if_modified(|latest| {
                        let changed = *latest != seen;
                        *latest = seen;
                        changed
                    });
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => debug!(%key, "observer: {error}"),
        }
        pace.wait(coordinator.env()).await;
    }
}

fn apply(entries: &mut BTreeMap<Key, Entry>, event: WatchEvent) {
    match event {
        WatchEvent::State(now) | WatchEvent::Resync(now) => {
            *entries = now.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        }
        WatchEvent::Put(entry) => {
            entries.insert(entry.key.clone(), entry);
        }
        WatchEvent::Delete { key, .. } => {
            entries.remove(&key);
        }
    }
}

fn observe(entries: &BTreeMap<Key, Entry>, recipe: Recipe) -> Observation {
    let candidates = entries
        .values()
        .filter(|entry| recipe == Recipe::Cas || entry.key.is_sequential());
    match candidates.min_by_key(|entry| entry.created) {
        Some(entry) => Observation::Leader(Leader::of(entry)),
        None => Observation::NoLeader,
    }
}
