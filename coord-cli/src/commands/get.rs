use clap::Args;
use coordkit::{Entry, Key};
use serde::Serialize;

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;

/// Show the value of a key
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord get /jobs/nightly --store etcd://localhost:2379")]
pub(crate) struct Get {
    /// Which key
    #[arg(value_parser = parse_key)]
    key: Key,
    /// The value byte for byte, with nothing added and nothing escaped
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

/// An entry as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    key: &'a str,
    /// What is no UTF-8 is shown as U+FFFD.
    value: String,
    version: String,
    created: u64,
    lease: Option<String>,
}

// === impl Get ===

impl Get {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let found = coordinator.get_latest(&self.key).await?;
        coordinator.close().await.ok();
        match found {
            None => Err(Exit::failed(format!("get {}: there is no such entry", self.key))),
            Some(entry) if self.raw => app.out.bytes(entry.value.to_vec()).await,
            Some(entry) => {
                let row = Row::of(&entry);
                app.out.row(&row, Escaped::new(&row.value)).await
            }
        }
    }
}

// === impl Row ===

impl<'a> Row<'a> {
    pub(crate) fn of(entry: &'a Entry) -> Row<'a> {
        Row {
            key: entry.key.as_str(),
            value: String::from_utf8_lossy(&entry.value).into_owned(),
            version: entry.version.to_string(),
            created: entry.created,
            lease: entry.lease.map(|lease| lease.to_string()),
        }
    }
}
