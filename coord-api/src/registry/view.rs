use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::debug;

use super::Instance;
use crate::{Coordinator, Key, Target, Task, WatchEvent};

/// The instances of a service by id.
pub type Instances = Arc<BTreeMap<String, Instance>>;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The instances of one service, kept up to date; dropping it ends that.
///
/// While the store cannot be reached it shows what it knew last, and catches up afterwards.
pub struct View {
    instances: watch::Receiver<Option<Instances>>,
    _follower: Task,
}

impl View {
    pub(super) fn open(coordinator: Arc<dyn Coordinator>, service: Key) -> View {
        let (sender, instances) = watch::channel(None);
        let env = coordinator.env().clone();
        View {
            instances,
            _follower: env.spawn(follow(coordinator, service, sender)),
        }
    }

    /// The latest that is known; `None` as long as the store has not answered at all.
    pub fn now(&self) -> Option<Instances> {
        self.instances.borrow().clone()
    }

    /// Waits for another state than the one that this last told (at first: any) and tells it. `None` when the
    /// coordinator was closed.
    pub async fn changed(&mut self) -> Option<Instances> {
        self.instances.changed().await.ok()?;
        self.instances.borrow_and_update().clone()
    }

    /// Waits until the view satisfies `condition`; `None` when the coordinator was closed before.
    pub async fn wait_for(&mut self, condition: impl Fn(&BTreeMap<String, Instance>) -> bool) -> Option<Instances> {
        let satisfied = |now: &Option<Instances>| now.as_ref().is_some_and(|now| condition(now));
        self.instances.wait_for(satisfied).await.ok()?.clone()
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("now", &self.now()).finish()
    }
}

async fn follow(coordinator: Arc<dyn Coordinator>, service: Key, sender: watch::Sender<Option<Instances>>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match coordinator.watch(&Target::Children(service.clone())).await {
            Ok(mut watch) => {
                pause = FIRST_PAUSE;
                while let Some(Ok(event)) = watch.next().await {
                    sender.send_if_modified(|now| apply(Arc::make_mut(now.get_or_insert_default()), event));
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => debug!(%service, "could not watch the service: {error}"),
        }
        coordinator.env().sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns whether to tell the readers.
fn apply(instances: &mut BTreeMap<String, Instance>, event: WatchEvent) -> bool {
    match event {
        WatchEvent::State(entries) | WatchEvent::Resync(entries) => {
            *instances = entries
                .iter()
                .filter_map(Instance::of)
                .map(|instance| (instance.id.clone(), instance))
                .collect();
            true
        }
        WatchEvent::Put(entry) => match Instance::of(&entry) {
            Some(instance) => instances.insert(instance.id.clone(), instance.clone()) != Some(instance),
            None => instances.remove(entry.key.name()).is_some(),
        },
        WatchEvent::Delete { key, .. } => instances.remove(key.name()).is_some(),
    }
}
