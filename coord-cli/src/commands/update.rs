use clap::Args;
use coordkit::{Expect, Key, Version};

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::entry_row::EntryRow;
use crate::exit::Exit;
use crate::value_arg;

/// Write a new value to a key that exists
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  coord update /settings/colour red --store etcd://localhost:2379\n  \
                        coord update /settings/colour red --version 1f.2a --store etcd://localhost:2379"
)]
pub(crate) struct Update {
    /// Which key
    #[arg(value_parser = parse_key)]
    key: Key,
    /// Its new value; - reads it from standard input
    value: String,
    /// Only if the entry is still in this version, which get and list show with --json
    #[arg(long)]
    version: Option<Version>,
}

// === impl Update ===

impl Update {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let value = value_arg::read(self.value, coordinator.capabilities().max_value).await?;
        let updated = coordinator
            .update(&self.key, value.into(), expected(self.version))
            .await;
        coordinator.close().await.ok();
        let row = EntryRow::of(&updated?);
        app.out.row(&row, row.words()).await
    }
}

pub(super) fn expected(version: Option<Version>) -> Expect {
    version.map_or(Expect::Any, Expect::Version)
}
