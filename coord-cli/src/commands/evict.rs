use clap::Args;
use coordkit::{ErrorKind, Expect, Leader};
use serde::Serialize;

use super::run::job_keys;
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;

/// End the present leadership of a job: whoever runs it kills it and goes to the end of the line
///
/// The holder learns it by its own watch, while the next copy gets its turn at once: for a moment both may run, and only
/// the token tells the newer from the older. To stop a job in order, send SIGTERM to the copy that runs it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord evict nightly --store etcd://localhost:2379")]
pub(crate) struct Evict {
    /// Which job: a name, or a key
    job: String,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    job: &'a str,
    /// Who ran it, if anybody did.
    evicted: Option<&'a str>,
    token: Option<u64>,
}

// === impl Evict ===

impl Evict {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let candidates = job_keys(&self.job, None)?.candidates;
        let app = App::new(global, [])?;
        let coordinator = app.connect()?;
        // From here on, lists are no older than this.
        coordinator.get_latest(&candidates).await?;
        let evicted = loop {
            let entries = coordinator.children(&candidates).await?;
            let candidates = entries.into_iter().filter(|entry| entry.key.is_sequential());
            let Some(entry) = candidates.min_by_key(|entry| entry.created) else {
                break None;
            };
            match coordinator.delete(&entry.key, Expect::Version(entry.version)).await {
                Ok(()) => break Some(Leader::of(&entry)),
                // It has just told something about itself, or gone: it is to be the one that leads now.
                Err(error) if matches!(error.kind(), ErrorKind::VersionMismatch(_) | ErrorKind::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        };
        coordinator.close().await.ok();
        let row = Row {
            job: &self.job,
            evicted: evicted.as_ref().map(|leader| leader.name.as_str()),
            token: evicted.as_ref().map(|leader| leader.token),
        };
        let words = match &evicted {
            Some(leader) => format!("evicted  {} (token {})", Escaped::new(&leader.name), leader.token),
            None => "nobody ran it".to_owned(),
        };
        app.out.row(&row, words).await
    }
}
