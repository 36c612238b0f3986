use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coordkit::{Coordinator, Create as Request, CreateMode, Entry, Error, Key, parse_duration};
use serde::Serialize;

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::entry_row::EntryRow;
use crate::exit::Exit;
use crate::value_arg;

/// Create a key unless it exists, and its missing parents with it
///
/// With --ttl the entry has a lease of its own that nobody renews: it ends by itself that much later, although this
/// command ends at once. Without, it stays until it is deleted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  coord create /settings/colour blue --store etcd://localhost:2379\n  \
                        coord create /locks/import mine --ttl 30s --store etcd://localhost:2379"
)]
pub(crate) struct Create {
    /// Which key; with --sequential the parent
    #[arg(value_parser = parse_key)]
    key: Key,
    /// Its value; - reads it from standard input
    value: String,
    /// The entry ends this much later
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// The store chooses the name, below KEY; `created` tells the order
    #[arg(long, requires = "ttl")]
    sequential: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    entry: EntryRow,
    /// What the store granted.
    ttl_ms: Option<u64>,
}

// === impl Create ===

impl Create {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let value = value_arg::read(self.value, coordinator.capabilities().max_value).await?;
        let grant = match self.ttl {
            Some(ttl) => Some(coordinator.grant(ttl).await?),
            None => None,
        };
        let mode = match &grant {
            None => CreateMode::Persistent,
            Some(grant) if self.sequential => CreateMode::Sequential(grant.lease),
            Some(grant) => CreateMode::Ephemeral(grant.lease),
        };
        let request = Request::new(coordinator.env(), self.key, value, mode);
        let created = create(&coordinator, &request).await;
        if created.is_err() || grant.is_none() {
            coordinator.close().await.ok();
        } else {
            // Closing, or dropping, would end the lease now. The process ends, and the lease by its ttl.
            std::mem::forget(coordinator);
        }
        let row = Row {
            entry: EntryRow::of(&created?),
            ttl_ms: grant.map(|grant| u64::try_from(grant.ttl.as_millis()).unwrap_or(u64::MAX)),
        };
        let ends = match grant {
            Some(grant) => format!("  ends in {:?}", grant.ttl),
            None => String::new(),
        };
        app.out.row(&row, row.entry.words() + &ends).await
    }
}

/// Whether an unanswered create happened is settled by the same create again.
async fn create(coordinator: &Arc<dyn Coordinator>, request: &Request) -> Result<Entry, Error> {
    match coordinator.create(request).await {
        Err(error) if error.is_unknown() => coordinator.create(request).await,
        result => result,
    }
}
