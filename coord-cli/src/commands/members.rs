use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::node::read_secret;
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::http::client;

/// Show the members of a cluster, as one of its nodes sees them
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord members --at 127.0.0.1:7480 --secret-file secret")]
pub(crate) struct Members {
    /// The --http address of a node
    #[arg(long, value_name = "HOST:PORT")]
    at: String,
    /// The file with the secret that all nodes share, if they have one
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

// === impl Members ===

impl Members {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let app = App::without_store(global);
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let page = client::get(&self.at, "/cluster/members", secret.as_deref()).await?;
        app.row(&page, table(&page)).await
    }
}

fn table(page: &Value) -> String {
    let text = |value: &Value| Escaped::new(value.as_str().unwrap_or("-")).to_string();
    let unreachable = |node: &Value| {
        let list = page["unreachable"].as_array();
        list.is_some_and(|list| list.iter().any(|entry| entry["node"] == *node))
    };
    let mut lines = vec![format!("cluster {}", text(&page["cluster"]))];
    for member in page["members"].as_array().into_iter().flatten() {
        let node = &member["node"];
        let mut notes = vec![];
        if *node == page["leader"] {
            notes.push("leader");
        }
        if *node == page["selfNode"] {
            notes.push("asked");
        }
        if unreachable(node) {
            notes.push("unreachable");
        }
        let line = format!("{:24} {:8} {}", text(node), text(&member["status"]), notes.join(", "));
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}
