use std::net::SocketAddr;
use std::sync::Arc;

use coord_bootstrap::{Bootstrap, End, Event};
use coord_cluster::{ClusterNode, Event as NodeEvent};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::exit::Exit;
use crate::http::status;
use crate::output::Output;

/// Tells what happens to a node, one row for each thing.
pub(super) struct Teller {
    out: Output,
    node: Arc<ClusterNode>,
    events: Mutex<(Receiver<NodeEvent>, Receiver<Event>)>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Row {
    Listening {
        node: String,
        incarnation: u64,
        http: Option<String>,
    },
    Formed {
        cluster: String,
        generation: u64,
    },
    Joined {
        cluster: String,
        generation: u64,
        seed: Option<String>,
    },
    Member {
        cluster: String,
        node: String,
        incarnation: u64,
        status: &'static str,
    },
    Unreachable {
        cluster: String,
        node: String,
    },
    Reachable {
        cluster: String,
        node: String,
    },
    Leader {
        cluster: String,
        leader: Option<String>,
    },
    Managing {
        cluster: String,
        managing: bool,
    },
    Seeds {
        cluster: String,
        seeds: Vec<String>,
    },
    Downed {
        cluster: String,
        nodes: Vec<String>,
    },
    Rival {
        cluster: String,
        holder: String,
    },
    Superseded {
        cluster: String,
    },
    Expelled {
        cluster: String,
    },
    Store {
        error: Option<String>,
    },
    Stopped {
        reason: String,
    },
}

// === impl Teller ===

impl Teller {
    pub(super) fn new(
        out: Output,
        node: Arc<ClusterNode>,
        events: Receiver<NodeEvent>,
        bootstrap: &Bootstrap,
    ) -> Teller {
        Teller {
            out,
            node,
            events: Mutex::new((events, bootstrap.events())),
        }
    }

    pub(super) async fn tell_listening(&self, http: Option<SocketAddr>) -> Result<(), Exit> {
        let me = self.node.self_node();
        let words = match http {
            Some(http) => format!("listening   {} (http://{http})", me.address),
            None => format!("listening   {}", me.address),
        };
        let row = Row::Listening {
            node: me.address.to_string(),
            incarnation: me.incarnation.0,
            http: http.map(|http| http.to_string()),
        };
        self.out.row(&row, words).await
    }

    /// Until the end.
    pub(super) async fn run(&self) -> Result<End, Exit> {
        let (nodes, bootstraps) = &mut *self.events.lock().await;
        loop {
            tokio::select! {
                biased;
                event = nodes.recv() => match event {
                    Ok(event) => self.tell_node(event).await?,
                    Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "too many events to tell them all"),
                    Err(RecvError::Closed) => return Ok(End::NodeStopped),
                },
                event = bootstraps.recv() => match event {
                    Ok(event) => {
                        let end = match &event {
                            Event::Stopped(end) => Some(end.clone()),
                            _ => None,
                        };
                        self.tell(event).await?;
                        if let Some(end) = end {
                            return Ok(end);
                        }
                    }
                    Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "too many events to tell them all"),
                    Err(RecvError::Closed) => return Ok(End::NodeStopped),
                },
            }
        }
    }

    fn cluster(&self) -> String {
        self.node.view().cluster.to_string()
    }

    async fn tell_node(&self, event: NodeEvent) -> Result<(), Exit> {
        let cluster = self.cluster();
        let (row, words) = match event {
            NodeEvent::Member { node, to, .. } => {
                let words = format!("member      {} is {}", node.address, status(to));
                let row = Row::Member {
                    cluster,
                    node: node.address.to_string(),
                    incarnation: node.incarnation.0,
                    status: status(to),
                };
                (row, words)
            }
            NodeEvent::Leader { leader } => {
                let leader = leader.map(|leader| leader.address.to_string());
                let words = format!("leader      {}", leader.as_deref().unwrap_or("nobody"));
                (Row::Leader { cluster, leader }, words)
            }
            NodeEvent::Unreachable { node } => {
                let node = node.address.to_string();
                let words = format!("unreachable {node}");
                (Row::Unreachable { cluster, node }, words)
            }
            NodeEvent::Reachable { node } => {
                let node = node.address.to_string();
                let words = format!("reachable   {node}");
                (Row::Reachable { cluster, node }, words)
            }
            _ => return Ok(()),
        };
        self.out.row(&row, words).await
    }

    async fn tell(&self, event: Event) -> Result<(), Exit> {
        let cluster = self.cluster();
        let (row, words) = match event {
            Event::Formed { record } => {
                let (cluster, generation) = (record.cluster.to_string(), record.generation);
                let words = format!("formed      cluster {cluster}, generation {generation}");
                (Row::Formed { cluster, generation }, words)
            }
            Event::Joined { record, seed } => {
                let (cluster, generation) = (record.cluster.to_string(), record.generation);
                let seed = seed.map(|seed| seed.to_string());
                let by = seed.as_deref().map_or(String::new(), |seed| format!(" by {seed}"));
                let words = format!("joined      cluster {cluster}, generation {generation}{by}");
                let row = Row::Joined {
                    cluster,
                    generation,
                    seed,
                };
                (row, words)
            }
            Event::Managing => {
                let words = "manager     this node keeps the seeds".to_owned();
                (
                    Row::Managing {
                        cluster,
                        managing: true,
                    },
                    words,
                )
            }
            Event::NotManaging { why } => {
                let words = format!("manager     no longer this node: {why}");
                (
                    Row::Managing {
                        cluster,
                        managing: false,
                    },
                    words,
                )
            }
            Event::Seeds { advertised } => {
                let seeds: Vec<String> = advertised.iter().map(ToString::to_string).collect();
                let words = format!("seeds       {}", seeds.join(" "));
                (Row::Seeds { cluster, seeds }, words)
            }
            Event::Downed { nodes } => {
                let nodes: Vec<String> = nodes.iter().map(|node| node.address.to_string()).collect();
                let words = format!("downed      {}", nodes.join(" "));
                (Row::Downed { cluster, nodes }, words)
            }
            Event::Rival { holder } => {
                let words = format!("RIVAL       {holder} holds the leader's entry: is the cluster split?");
                (Row::Rival { cluster, holder }, words)
            }
            Event::Superseded { old } => {
                let cluster = old.cluster.to_string();
                let words = format!("superseded  cluster {cluster} is outdated; looking for its successor");
                (Row::Superseded { cluster }, words)
            }
            Event::Expelled { old } => {
                let cluster = old.cluster.to_string();
                let words = format!("expelled    from cluster {cluster}; coming back as a new incarnation");
                (Row::Expelled { cluster }, words)
            }
            Event::StoreFailed { error } => {
                let words = format!("store       {error}");
                (Row::Store { error: Some(error) }, words)
            }
            Event::StoreBack => (Row::Store { error: None }, "store       answers again".to_owned()),
            Event::Stopped(end) => {
                let reason = end.to_string();
                let words = format!("stopped     {reason}");
                (Row::Stopped { reason }, words)
            }
            _ => return Ok(()),
        };
        self.out.row(&row, crate::escape::Escaped::new(&words)).await
    }
}
