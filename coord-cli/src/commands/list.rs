use std::sync::Arc;

use clap::Args;
use coordkit::{Coordinator, Entry, Key, Result};

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::entry_row::EntryRow;
use crate::exit::Exit;

/// Show the children of a key, with their values
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord list /settings --store etcd://localhost:2379")]
pub(crate) struct List {
    /// Which key; / is the root
    #[arg(value_parser = parse_key, default_value = "/")]
    key: Key,
    /// And everything below them
    #[arg(long)]
    recursive: bool,
}

// === impl List ===

impl List {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        let found = self.find(&coordinator).await;
        coordinator.close().await.ok();
        for entry in found? {
            let row = EntryRow::of(&entry);
            app.out.row(&row, row.words()).await?;
        }
        Ok(())
    }

    async fn find(&self, coordinator: &Arc<dyn Coordinator>) -> Result<Vec<Entry>> {
        // What others have written before this command was called is to be seen.
        // The root is no entry: there, any other key does it.
        let any = if self.key.is_root() {
            Key::new("/any").ok()
        } else {
            None
        };
        coordinator.get_latest(any.as_ref().unwrap_or(&self.key)).await?;
        let mut found = Vec::new();
        let mut open = vec![self.key.clone()];
        while let Some(parent) = open.pop() {
            let children = coordinator.children(&parent).await?;
            if self.recursive {
                open.extend(children.iter().map(|entry| entry.key.clone()));
            }
            found.extend(children);
        }
        found.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }
}
