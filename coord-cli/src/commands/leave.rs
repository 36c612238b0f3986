use std::path::PathBuf;

use clap::Args;
use coord_cluster::Address;
use serde_json::json;

use super::node::read_secret;
use crate::app::App;
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::http::client;

/// Tell a node to leave its cluster gracefully and stop
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord leave --at 127.0.0.1:7480 --secret-file secret\n  \
                        coord leave 10.0.0.7:7400 --at 127.0.0.1:7480 --secret-file secret")]
pub(crate) struct Leave {
    /// Who is to leave [default: the node that is asked]
    #[arg(value_name = "NODE")]
    node: Option<Address>,
    #[command(flatten)]
    at: At,
}

/// Put a node down that will not come back; if it is alive, it comes back as a new incarnation
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord down 10.0.0.7:7400 --at 127.0.0.1:7480 --secret-file secret")]
pub(crate) struct Down {
    /// Who
    #[arg(value_name = "NODE")]
    node: Address,
    #[command(flatten)]
    at: At,
}

/// Whom to ask, and by what right.
#[derive(Debug, Args)]
struct At {
    /// The --http address of a node
    #[arg(long, value_name = "HOST:PORT")]
    at: String,
    /// The file with the secret that all nodes share
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl Leave {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        self.at.tell(global, "/cluster/leave", self.node.as_ref()).await
    }
}

impl Down {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        self.at.tell(global, "/cluster/down", Some(&self.node)).await
    }
}

impl At {
    async fn tell(&self, global: &Global, path: &str, node: Option<&Address>) -> Result<(), Exit> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let body = match node {
            Some(node) => json!({ "node": node.to_string() }).to_string(),
            None => String::new(),
        };
        let answer = client::post(&self.at, path, body.into_bytes(), secret.as_deref()).await?;
        let words = answer["message"].as_str().unwrap_or("done").to_owned();
        App::without_store(global).row(&answer, Escaped::new(&words)).await
    }
}
