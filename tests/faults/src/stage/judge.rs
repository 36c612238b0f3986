use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Directory, Env, Error, Key};
use tokio::task::JoinHandle;

use super::{Cluster, Scribe};
use crate::client::{BLIND, CHAINED, ELECTIONS, FENCED, KEYS, SERVICE};
use crate::history::{Held, What};

/// Between two looks at the registry.
const PAUSE: Duration = Duration::from_millis(250);

/// No fault lies on its way, so what is late is late because the machine is busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads what everybody should see, past all proxies.
#[derive(Debug)]
pub(crate) struct Judge {
    coordinator: Arc<dyn Coordinator>,
    scribe: Scribe,
    listing: JoinHandle<()>,
}

impl Judge {
    pub(crate) fn new(cluster: &Cluster, scribe: &Scribe) -> Result<Judge, Error> {
        let coordinator = cluster.store().open(&cluster.addrs(), PATIENCE, Env::system())?;
        let listing = tokio::spawn(list(coordinator.clone(), scribe.clone()));
        Ok(Judge {
            coordinator,
            scribe: scribe.clone(),
            listing,
        })
    }

    /// What there is now.
    pub(crate) async fn finals(&self) -> Result<Vec<(String, Option<Held>)>, Error> {
        let chained = (0..KEYS).map(|n| format!("{CHAINED}/k{n}"));
        let fenced = ELECTIONS
            .iter()
            .map(|key| format!("{FENCED}{}", &key["/elections".len()..]));
        self.latest(chained.chain(fenced)).await
    }

    /// What there is now below the keys that nobody watches, of those that were ever written.
    pub(crate) async fn blind(&self) -> Result<Vec<(String, Option<Held>)>, Error> {
        let lines = self.scribe.lines();
        let keys = lines.iter().filter_map(|line| match &line.what {
            What::Call { op, .. } => Some(op.key()),
            _ => None,
        });
        let below = keys.filter(|key| key.starts_with(BLIND));
        let keys: BTreeSet<String> = below.map(str::to_owned).collect();
        self.latest(keys.into_iter()).await
    }

    async fn latest(&self, keys: impl Iterator<Item = String>) -> Result<Vec<(String, Option<Held>)>, Error> {
        let mut finals = vec![];
        for key in keys {
            let Ok(name) = Key::new(&key) else { continue };
            let entry = self.coordinator.get_latest(&name).await?;
            let held = entry.map(|entry| Held {
                value: String::from_utf8_lossy(&entry.value).into_owned(),
                version: entry.version.to_string(),
                created: entry.created,
            });
            finals.push((key, held));
        }
        Ok(finals)
    }

    /// Writes down what was there in the end.
    pub(crate) fn rest(&self, finals: Vec<(String, Option<Held>)>) {
        for (key, held) in finals {
            self.say(What::Final { key, held });
        }
    }

    pub(crate) fn say(&self, what: What) {
        self.scribe.say("judge", what);
    }

    pub(crate) async fn close(self) {
        self.listing.abort();
        if let Err(error) = self.coordinator.close().await {
            self.scribe.say(
                "judge",
                What::Note {
                    text: format!("closing: {error}"),
                },
            );
        }
    }
}

/// Looks at the registry, again and again.
async fn list(coordinator: Arc<dyn Coordinator>, scribe: Scribe) {
    let directory = Directory::new(coordinator.clone());
    let Ok(services) = Key::new(format!("/services/{SERVICE}")) else {
        return;
    };
    loop {
        let from = scribe.now();
        // From here on, lists are no older than this.
        if coordinator.get_latest(&services).await.is_ok()
            && let Ok(instances) = directory.list(SERVICE).await
        {
            let owners = instances.into_iter().map(|instance| instance.address).collect();
            scribe.say("judge", What::Listed { from, owners });
        }
        tokio::time::sleep(PAUSE).await;
    }
}
