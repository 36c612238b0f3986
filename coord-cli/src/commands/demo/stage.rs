use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coord_bootstrap::{Bootstrap, Config, Event, Reform};
use coord_cluster::{ClusterNode, DetectorConfig, MemberState, NodeId, Settings};
use coordkit::{Coordinator, CoordinatorExt, Key};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::switch::Switch;
use crate::exit::Exit;
use crate::output::Output;

/// The time to live of the leader's entry. Short, so that nobody has to wait long for a takeover.
pub(super) const TTL: Duration = Duration::from_secs(2);
/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// The nodes, the store as the audience sees it, and the timeline.
pub(super) struct Stage {
    open: Box<dyn Fn() -> Result<Arc<dyn Coordinator>, Exit>>,
    store: Arc<dyn Coordinator>,
    prefix: Key,
    pub(super) nodes: Vec<Actor>,
    line: Line,
    /// How often a node was elected and has formed a cluster.
    pub(super) formed: Arc<AtomicUsize>,
    told: mpsc::UnboundedSender<(Instant, String)>,
    /// By address.
    names: Arc<Mutex<Vec<(String, String)>>>,
    stories: JoinSet<()>,
}

/// One node of the demo.
pub(super) struct Actor {
    pub(super) name: String,
    pub(super) node: Arc<ClusterNode>,
    pub(super) bootstrap: Bootstrap,
    pub(super) store: Switch,
}

/// Writes the timeline.
struct Line {
    out: Output,
    started: Instant,
    told: mpsc::UnboundedReceiver<(Instant, String)>,
}

#[derive(Serialize)]
struct Row<'a> {
    at_ms: u64,
    kind: &'static str,
    what: &'a str,
}

// === impl Stage ===

impl Stage {
    pub(super) fn new(
        out: Output,
        prefix: Key,
        open: Box<dyn Fn() -> Result<Arc<dyn Coordinator>, Exit>>,
    ) -> Result<Stage, Exit> {
        let (sender, told) = mpsc::unbounded_channel();
        Ok(Stage {
            store: open()?,
            open,
            prefix,
            nodes: vec![],
            line: Line {
                out,
                started: Instant::now(),
                told,
            },
            formed: Arc::default(),
            told: sender,
            names: Arc::default(),
            stories: JoinSet::new(),
        })
    }

    /// Starts one more node.
    pub(super) async fn start(&mut self, name: String) -> Result<(), Exit> {
        let mut settings = Settings::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.config = coord_cluster::Config {
            gossip_interval: Duration::from_millis(200),
            fast_interval: Duration::from_millis(50),
            heartbeat_interval: Duration::from_millis(200),
            detector: DetectorConfig {
                acceptable_pause: Duration::from_millis(1200),
                first_interval: Duration::from_millis(200),
                ..DetectorConfig::default()
            },
            rejoin: false,
            ..coord_cluster::Config::default()
        };
        let node = ClusterNode::start(settings).await;
        let node = Arc::new(node.map_err(|error| Exit::failed(format!("no port for a node: {error}")))?);
        let store = Switch::new((self.open)()?);
        let config = Config {
            reform: Reform::Never,
            down_after: Some(Duration::from_millis(1500)),
            join_timeout: Duration::from_secs(1),
            wait_max: Duration::from_secs(1),
            ..Config::new(self.prefix.clone(), TTL)
        };
        let bootstrap = Bootstrap::start(Arc::new(store.clone()), node.clone(), config)?;
        let (mut events, told, formed) = (bootstrap.events(), self.told.clone(), self.formed.clone());
        let names = self.names.clone();
        let address = node.self_node().address.to_string();
        names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((address, name.clone()));
        let me = name.clone();
        self.stories.spawn(async move {
            while let Ok(event) = events.recv().await {
                if matches!(event, Event::Formed { .. }) {
                    formed.fetch_add(1, Ordering::SeqCst);
                }
                let known = names.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(story) = story(&me, &event, &known) {
                    let _ = told.send((Instant::now(), story));
                }
            }
        });
        self.nodes.push(Actor {
            name,
            node,
            bootstrap,
            store,
        });
        Ok(())
    }

    /// The node that holds the leader's entry.
    pub(super) fn manager(&self) -> Option<usize> {
        self.nodes
            .iter()
            .position(|actor| actor.bootstrap.state().is_managing())
    }

    /// A headline.
    pub(super) async fn scene(&mut self, what: &str) -> Result<(), Exit> {
        self.line.flush().await?;
        self.line.say("scene", what).await
    }

    /// Waits until a thing is really so, and says so; fails if it does not become so.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        mut look: impl AsyncFnMut(&Stage) -> Option<T>,
    ) -> Result<T, Exit> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self).await {
                self.line.flush().await?;
                self.line.say("done", what).await?;
                return Ok(found);
            }
            if Instant::now() >= end {
                self.line.flush().await?;
                return Err(Exit::failed(format!(
                    "the demo failed: not within {PATIENCE:?}: {what}"
                )));
            }
            self.line.flush().await?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Tells what the nodes told meanwhile, for a while.
    pub(super) async fn pass(&mut self, time: Duration) -> Result<(), Exit> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.line.flush().await?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether these nodes, and nobody else, are one converged cluster with everybody up.
    pub(super) fn is_whole(&self) -> bool {
        let Some(first) = self.nodes.first().map(|actor| actor.node.view()) else {
            return false;
        };
        self.nodes.iter().all(|actor| {
            let view = actor.node.view();
            let up = view.members.iter().filter(|member| member.state == MemberState::Up);
            view.converged
                && view.cluster == first.cluster
                && view.members.len() == self.nodes.len()
                && up.count() == self.nodes.len()
        })
    }

    /// Whether exactly the nodes, in their present lives, are advertised.
    pub(super) async fn seeds_are_true(&self) -> bool {
        let Ok(key) = self.prefix.child("seeds") else {
            return false;
        };
        let Ok(seeds) = self.store.children(&key).await else {
            return false;
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let seeds: Vec<String> = seeds.iter().map(|seed| text(&seed.value)).collect();
        let names = |seed: &String, node: &NodeId| {
            seed.contains(&format!("\"{}\"", node.address)) && seed.contains(&node.incarnation.to_string())
        };
        let advertised = |actor: &Actor| seeds.iter().any(|seed| names(seed, &actor.node.self_node()));
        seeds.len() == self.nodes.len().min(5)
            && self.nodes.iter().filter(|actor| advertised(actor)).count() == seeds.len()
    }

    /// The value of `<prefix>/<name>`.
    pub(super) async fn read(&self, name: &str) -> Option<String> {
        let entry = self.store.get_latest(&self.prefix.child(name).ok()?).await.ok()??;
        Some(String::from_utf8_lossy(&entry.value).into_owned())
    }

    /// Removes what the demo has written.
    pub(super) async fn clean_up(mut self) -> Result<(), Exit> {
        self.nodes.clear();
        self.stories.shutdown().await;
        self.store.delete_recursive(&self.prefix).await.ok();
        self.store.close().await.ok();
        self.line.flush().await
    }
}

// === impl Line ===

impl Line {
    async fn flush(&mut self) -> Result<(), Exit> {
        while let Ok((at, what)) = self.told.try_recv() {
            self.write(at, "event", &what).await?;
        }
        Ok(())
    }

    async fn say(&self, kind: &'static str, what: &str) -> Result<(), Exit> {
        self.write(Instant::now(), kind, what).await
    }

    async fn write(&self, at: Instant, kind: &'static str, what: &str) -> Result<(), Exit> {
        let at = at.duration_since(self.started);
        let colour = self.out.is_terminal();
        let paint = |code: &str, text: &str| match colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        };
        let seconds = paint("2", &format!("{:6.2} s", at.as_secs_f64()));
        let words = match kind {
            "scene" => format!("\n{seconds}  {}", paint("1;36", what)),
            "done" => format!("{seconds}    {} {}", paint("1;32", "✓"), paint("1", what)),
            _ => format!("{seconds}      {what}"),
        };
        let row = Row {
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            kind,
            what,
        };
        self.out.row(&row, words).await
    }
}

/// What a node's event is called on the timeline.
fn story(me: &str, event: &Event, names: &[(String, String)]) -> Option<String> {
    let name = |address: &str| {
        let known = names.iter().find(|(known, _)| known == address);
        known.map_or(address.to_owned(), |(_, name)| name.clone())
    };
    Some(match event {
        Event::Formed { record } => format!(
            "{me} is elected and forms cluster {}, generation {}",
            record.cluster, record.generation
        ),
        Event::Joined { seed: Some(seed), .. } => {
            let seed = seed.to_string();
            match name(&seed) {
                known if known != seed => format!("{me} is let in by {known}"),
                _ => format!("{me} is let in by another one"),
            }
        }
        Event::Managing => format!("{me} holds the leader's entry and keeps the seeds"),
        Event::NotManaging { why } => format!("{me} gives the leader's entry back: {}", plain(why, &name)),
        Event::Seeds { advertised } => {
            let seeds: Vec<String> = advertised.iter().map(|seed| name(&seed.to_string())).collect();
            format!(
                "{me} advertises {} seed{}",
                seeds.len(),
                if seeds.len() == 1 { "" } else { "s" }
            )
        }
        Event::Downed { nodes } => {
            let nodes: Vec<String> = nodes.iter().map(|node| name(&node.address.to_string())).collect();
            format!("{me} puts {} down: nobody can reach it", nodes.join(", "))
        }
        Event::StoreFailed { .. } => format!("{me} cannot reach the store"),
        Event::StoreBack => format!("{me} reaches the store again"),
        _ => return None,
    })
}

/// `address#incarnation comes first`, by its name.
fn plain(why: &str, name: &impl Fn(&str) -> String) -> String {
    match why.split_once('#') {
        Some((address, rest)) => {
            let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
            let known = name(address);
            let who = if known == address {
                "another one".to_owned()
            } else {
                known
            };
            format!("{who} {rest}")
        }
        None => why.to_owned(),
    }
}
