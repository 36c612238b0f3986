use std::sync::Arc;

use clap::Args;
use coordkit::{Coordinator, Key, Target, WatchEvent};
use serde::Serialize;

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::entry_row::EntryRow;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Show a key and then each change of it, until SIGINT or SIGTERM
///
/// First comes the state, then the changes, merged to the latest if they come faster than they are read. "resync" is
/// the whole state anew, because what happened in between cannot be told: what is not in it is gone.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord watch /settings --children --json --store etcd://localhost:2379")]
pub(crate) struct Watch {
    /// Which key
    #[arg(value_parser = parse_key)]
    key: Key,
    /// Watch its children instead
    #[arg(long)]
    children: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Row {
    State {
        entries: Vec<EntryRow>,
    },
    Put {
        #[serde(flatten)]
        entry: EntryRow,
    },
    Delete {
        key: String,
        created: u64,
    },
    Resync {
        entries: Vec<EntryRow>,
    },
}

// === impl Watch ===

impl Watch {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Ok(()),
            () = app.out.closed() => Err(Exit::pipe()),
            result = self.follow(&app, &coordinator) => result,
        };
        coordinator.close().await.ok();
        result
    }

    async fn follow(&self, app: &App, coordinator: &Arc<dyn Coordinator>) -> Result<(), Exit> {
        let target = match self.children {
            true => Target::Children(self.key.clone()),
            false => Target::Key(self.key.clone()),
        };
        waiting::for_the_store(coordinator, &app.config.store).await?;
        let mut watch = coordinator.watch(&target).await?;
        while let Some(event) = watch.next().await {
            let row = Row::of(event?);
            app.out.row(&row, row.words()).await?;
        }
        Err(Exit::failed(format!("watch {}: it ended", self.key)))
    }
}

// === impl Row ===

impl Row {
    fn of(event: WatchEvent) -> Row {
        let rows = |entries: Vec<_>| entries.iter().map(EntryRow::of).collect();
        match event {
            WatchEvent::State(entries) => Row::State { entries: rows(entries) },
            WatchEvent::Resync(entries) => Row::Resync { entries: rows(entries) },
            WatchEvent::Put(entry) => Row::Put {
                entry: EntryRow::of(&entry),
            },
            WatchEvent::Delete { key, created } => Row::Delete {
                key: key.to_string(),
                created,
            },
        }
    }

    fn words(&self) -> String {
        let all = |what: &str, entries: &[EntryRow]| {
            let lines: Vec<String> = entries.iter().map(|entry| format!("\n  {}", entry.words())).collect();
            format!("{what}  {} entries{}", entries.len(), lines.concat())
        };
        match self {
            Row::State { entries } => all("state ", entries),
            Row::Resync { entries } => all("resync", entries),
            Row::Put { entry } => format!("put     {}", entry.words()),
            Row::Delete { key, created } => format!("delete  {key}  created {created}"),
        }
    }
}
