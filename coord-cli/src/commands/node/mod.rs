mod told;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coord_bootstrap::{Bootstrap, Config, End, Reform};
use coord_cluster::{Address, ClusterNode, Secret, Settings};
use coordkit::{Key, parse_duration};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::app::{App, parse_key};
use crate::cli::Global;
use crate::exit::Exit;
use crate::http::{Control, Pages, serve};
use crate::prometheus::Prometheus;
use crate::shutdown::Shutdown;
use told::Teller;

/// Run a cluster node: find the cluster through the store or be elected its first seed, then gossip
///
/// Nodes with the same store and prefix become one cluster. The manager (the first reachable node) keeps the seeds in the
/// store, and puts down nodes that have been unreachable for --down-after. SIGTERM and SIGINT leave gracefully.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  coord node --listen 127.0.0.1:7400 --http 127.0.0.1:7480 --store etcd://localhost:2379"
)]
pub(crate) struct Node {
    /// Where to listen for other nodes; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: SocketAddr,
    /// How others reach this node [default: the address that it listens on]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<Address>,
    /// Serve /alive, /ready, /cluster/members, /bootstrap/seed-nodes and /metrics there
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<SocketAddr>,
    /// Where in the store the cluster is kept
    #[arg(long, value_name = "KEY", default_value = "/coord", value_parser = parse_key)]
    prefix: Key,
    /// The most seeds that are advertised
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_seeds: usize,
    /// Never form a cluster: only join one
    #[arg(long)]
    join_only: bool,
    /// The time to live of the leader's entry
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    ttl: Duration,
    /// Put nodes down that nobody could reach for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    down_after: Duration,
    /// Form a lost cluster anew after this long without a word of it, or `never` [default: 3 ttl + 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_reform)]
    reform_after: Option<Reform>,
    /// Give up, with exit code 75, when no cluster could be joined or formed in this time [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    give_up_after: Option<Duration>,
    /// How long a graceful exit may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    leave_within: Duration,
    /// A file with the secret that all nodes share
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Listen beyond this machine although there is no secret: whoever can connect is believed
    #[arg(long)]
    insecure: bool,
}

/// How long the last events may take to be told.
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// How long the connection to the store may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

// === impl Node ===

impl Node {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let app = App::new(global, [])?;
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        self.check(secret.is_some())?;
        let prometheus = Prometheus::default();
        // Fails if there is one already, which cannot be: this is the only command that sets it.
        let _ = metrics::set_global_recorder(prometheus.clone());

        let pages_listener = match self.http {
            Some(address) => Some(bind("--http", address).await?),
            None => None,
        };
        let node = self.start_node(secret.as_deref()).await?;
        let node_events = node.events();
        let coordinator = app.connect()?;
        let bootstrap = Bootstrap::start(coordinator.clone(), node.clone(), self.config())?;
        let bootstrap = Arc::new(bootstrap);
        let teller = Teller::new(app.out, node.clone(), node_events, &bootstrap);
        let http = pages_listener.as_ref().map(TcpListener::local_addr).transpose();
        let http = http.map_err(|error| Exit::failed(format!("--http: {error}")))?;
        let leave = Arc::new(Notify::new());
        let pages = Arc::new(Pages {
            node: node.clone(),
            bootstrap: bootstrap.clone(),
            control: Control::new(secret),
            prometheus,
            max_seeds: self.max_seeds,
            leave: leave.clone(),
        });
        let serving = async {
            match pages_listener {
                Some(listener) => serve(listener, pages).await,
                None => std::future::pending().await,
            }
        };
        let wanted = async {
            tokio::select! {
                () = shutdown.requested() => {}
                () = leave.notified() => {}
                () = app.out.closed() => {}
            }
            let end = bootstrap.leave(self.leave_within).await;
            // Its end is told like everything else, if anybody reads it.
            tokio::time::sleep(TOLD_WITHIN).await;
            Ok(end)
        };
        // Also when nobody reads what it tells, it can be asked and told to leave.
        let telling = async {
            teller.tell_listening(http).await?;
            teller.run().await
        };
        let end = tokio::select! {
            end = telling => end,
            () = serving => Err(Exit::failed("the web server has ended")),
            end = wanted => end,
        };
        // Nothing is left to give back: a store that is away is no reason to wait.
        tokio::time::timeout(CLOSE_WITHIN, coordinator.close()).await.ok();
        match end? {
            End::Left { .. } => Ok(()),
            End::GaveUp(reason) => Err(Exit::not_acquired(format!("no cluster was joined in time: {reason}"))),
            end => Err(Exit::failed(end)),
        }
    }

    /// Refuses to be open to the world without a secret.
    fn check(&self, secret: bool) -> Result<(), Exit> {
        if secret || self.insecure {
            return Ok(());
        }
        let beyond = [("--listen", Some(self.listen)), ("--http", self.http)];
        for (flag, address) in beyond {
            if let Some(address) = address.filter(|address| !address.ip().is_loopback()) {
                return Err(Exit::usage(format!(
                    "{flag} {address} is open to other machines, and without a secret whoever can connect is believed; \
                     give --secret-file (or --insecure, if you know what you do)"
                )));
            }
        }
        Ok(())
    }

    async fn start_node(&self, secret: Option<&[u8]>) -> Result<Arc<ClusterNode>, Exit> {
        let listener = bind("--listen", self.listen).await?;
        let mut settings = Settings::new(self.listen);
        settings.advertise = self.advertise.clone();
        settings.secret = secret.map(Secret::new);
        settings.config.rejoin = false;
        let node = ClusterNode::start_on(listener, settings);
        node.map(Arc::new)
            .map_err(|error| Exit::usage(format!("--advertise: {error}")))
    }

    fn config(&self) -> Config {
        let config = Config::new(self.prefix.clone(), self.ttl);
        Config {
            max_seeds: self.max_seeds,
            join_only: self.join_only,
            reform: self.reform_after.unwrap_or(config.reform),
            give_up_after: self.give_up_after,
            down_after: Some(self.down_after),
            ..config
        }
    }
}

async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, Exit> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Exit::failed(format!("{flag} {address}: {error}")))
}

/// The longest secret: whoever names a larger file has named the wrong one.
const MAX_SECRET: u64 = 4096;

/// The secret in a file, without its last line break.
pub(crate) fn read_secret(file: &Path) -> Result<Vec<u8>, Exit> {
    use std::io::Read;
    let refuse = |why: &dyn std::fmt::Display| Exit::usage(format!("--secret-file {}: {why}", file.display()));
    let mut bytes = vec![];
    let read = std::fs::File::open(file).and_then(|open| open.take(MAX_SECRET + 1).read_to_end(&mut bytes));
    read.map_err(|error| refuse(&error))?;
    if bytes.len() as u64 > MAX_SECRET {
        return Err(refuse(&format!(
            "it is longer than {MAX_SECRET} bytes, which no secret is"
        )));
    }
    let secret = bytes.trim_ascii_end().to_vec();
    if secret.is_empty() {
        return Err(refuse(&"it is empty"));
    }
    Ok(secret)
}

fn parse_reform(text: &str) -> Result<Reform, String> {
    match text {
        "never" => Ok(Reform::Never),
        text => parse_duration(text).map(Reform::After),
    }
}
