use clap::Args;
use coordkit::Key;

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::entry_row::EntryRow;
use crate::escape::Escaped;
use crate::exit::Exit;

/// Show the value of a key, as of now
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord get /settings/colour --store etcd://localhost:2379")]
pub(crate) struct Get {
    /// Which key
    #[arg(value_parser = parse_key)]
    key: Key,
    /// The value byte for byte, with nothing added and nothing escaped
    #[arg(long, conflicts_with = "json")]
    raw: bool,
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
                let row = EntryRow::of(&entry);
                app.out.row(&row, Escaped::new(&row.value)).await
            }
        }
    }
}
