use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::Args;
use coordkit::{Coordinator, Directory, Instance, Key, Target, Task, WatchEvent};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Show who offers a service, or all services
///
/// With --watch each change is told, until SIGINT or SIGTERM: added, changed, removed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord services web --watch --store etcd://localhost:2379")]
pub(crate) struct Services {
    /// Which service [default: all]
    service: Option<String>,
    /// Tell each change, too
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    service: &'a str,
    id: &'a str,
    address: &'a str,
    metadata: &'a BTreeMap<String, String>,
    owner: &'a str,
    created: u64,
}

type Known = BTreeMap<(String, String), Instance>;
/// A service, and its instances now.
type News = (String, Vec<Instance>);

// === impl Services ===

impl Services {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        if self.watch {
            return self.watch(&app).await;
        }
        let coordinator = app.connect()?;
        let result = self.list(&app, &coordinator).await;
        coordinator.close().await.ok();
        result
    }

    async fn list(&self, app: &App, coordinator: &Arc<dyn Coordinator>) -> Result<(), Exit> {
        let directory = Directory::new(coordinator.clone());
        // What others registered before this command was called is to be seen.
        coordinator.get_latest(&root()?).await?;
        let services = match &self.service {
            Some(service) => vec![service.clone()],
            None => directory.services().await?,
        };
        for service in services {
            for instance in directory.list(&service).await? {
                tell(app, None, &service, &instance).await?;
            }
        }
        Ok(())
    }

    async fn watch(&self, app: &App) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let coordinator = app.connect()?;
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Ok(()),
            () = app.out.closed() => Err(Exit::pipe()),
            result = self.follow(app, &coordinator) => result,
        };
        coordinator.close().await.ok();
        result
    }

    async fn follow(&self, app: &App, coordinator: &Arc<dyn Coordinator>) -> Result<(), Exit> {
        waiting::for_the_store(coordinator, &app.config.store).await?;
        let (sender, mut news) = mpsc::channel(64);
        let _follower = match &self.service {
            Some(service) => follow_one(coordinator, service.clone(), sender)?,
            None => coordinator.env().spawn(follow_all(coordinator.clone(), sender)),
        };
        let mut known = Known::new();
        while let Some((service, instances)) = news.recv().await {
            tell_changes(app, &mut known, &service, instances).await?;
        }
        Err(Exit::failed("services: the watch ended"))
    }
}

fn root() -> Result<Key, Exit> {
    Key::new("/services").map_err(Exit::failed)
}

fn follow_one(
    coordinator: &Arc<dyn Coordinator>,
    service: String,
    news: mpsc::Sender<News>,
) -> Result<Task, coordkit::Error> {
    let mut view = Directory::new(coordinator.clone()).view(&service)?;
    Ok(coordinator.env().spawn(async move {
        while let Some(instances) = view.changed().await {
            let instances = instances.values().cloned().collect();
            if news.send((service.clone(), instances)).await.is_err() {
                return;
            }
        }
    }))
}

/// A follower for each service, as they come; services never go, only their instances do.
async fn follow_all(coordinator: Arc<dyn Coordinator>, news: mpsc::Sender<News>) {
    let (mut seen, mut followers) = (BTreeSet::new(), Vec::new());
    let Ok(root) = root() else { return };
    let Ok(mut watch) = coordinator.watch(&Target::Children(root)).await else {
        return;
    };
    while let Some(Ok(event)) = watch.next().await {
        let entries = match event {
            WatchEvent::State(entries) | WatchEvent::Resync(entries) => entries,
            WatchEvent::Put(entry) => vec![entry],
            WatchEvent::Delete { .. } => Vec::new(),
        };
        for entry in entries {
            let service = entry.key.name().to_owned();
            if seen.insert(service.clone())
                && let Ok(follower) = follow_one(&coordinator, service, news.clone())
            {
                followers.push(follower);
            }
        }
    }
}

async fn tell_changes(app: &App, known: &mut Known, service: &str, now: Vec<Instance>) -> Result<(), Exit> {
    let now: Known = now
        .into_iter()
        .map(|instance| ((service.to_owned(), instance.id.clone()), instance))
        .collect();
    let before: Known = known
        .iter()
        .filter(|((of, _), _)| of == service)
        .map(|(key, instance)| (key.clone(), instance.clone()))
        .collect();
    known.retain(|(of, _), _| of != service);
    for (key, instance) in &before {
        if !now.contains_key(key) {
            tell(app, Some("removed"), service, instance).await?;
        }
    }
    for (key, instance) in &now {
        match before.get(key) {
            None => tell(app, Some("added"), service, instance).await?,
            Some(old) if old != instance => tell(app, Some("changed"), service, instance).await?,
            Some(_) => {}
        }
    }
    known.extend(now);
    Ok(())
}

async fn tell(app: &App, event: Option<&'static str>, service: &str, instance: &Instance) -> Result<(), Exit> {
    let row = Row {
        event,
        service,
        id: &instance.id,
        address: &instance.address,
        metadata: &instance.metadata,
        owner: &instance.owner,
        created: instance.created,
    };
    let facts: Vec<String> = instance
        .metadata
        .iter()
        .map(|(name, value)| format!("  {}={}", Escaped::new(name), Escaped::new(value)))
        .collect();
    let event = event.map_or(String::new(), |event| format!("{event:<9}"));
    let name = format!("{service}/{}", instance.id);
    let words = format!(
        "{event}{name:<24} {}{}",
        Escaped::new(&instance.address),
        facts.concat()
    );
    app.out.row(&row, words).await
}
