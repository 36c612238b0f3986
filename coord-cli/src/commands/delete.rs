use clap::Args;
use coordkit::{CoordinatorExt, Key, Version};
use serde::Serialize;

use super::update::expected;
use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::exit::Exit;

/// Delete a key
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  coord delete /settings/colour --store etcd://localhost:2379\n  \
                        coord delete /settings --recursive --store etcd://localhost:2379"
)]
pub(crate) struct Delete {
    /// Which key
    #[arg(value_parser = parse_key)]
    key: Key,
    /// Only if the entry is still in this version, which get and list show with --json
    #[arg(long, conflicts_with = "recursive")]
    version: Option<Version>,
    /// And everything below it
    #[arg(long)]
    recursive: bool,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    deleted: &'a str,
}

// === impl Delete ===

impl Delete {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let deleted = if self.recursive {
            coordinator.delete_recursive(&self.key).await
        } else {
            coordinator.delete(&self.key, expected(self.version)).await
        };
        coordinator.close().await.ok();
        deleted?;
        let key = self.key.as_str();
        app.out.row(&Row { deleted: key }, format!("deleted {key}")).await
    }
}
