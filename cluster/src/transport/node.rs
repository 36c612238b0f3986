use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use super::driver::{Command, Driver};
use super::settings::{Settings, Start};
use super::stats::{Counters, Stats};
use crate::{Address, ClusterId, ClusterView, Core, Event, Incarnation, Input, MetaError, NodeId, Refusal};

/// How many events a slow reader may fall behind; then it is told so and starts again from the latest view.
const EVENT_BACKLOG: usize = 1024;
const COMMAND_BACKLOG: usize = 64;

/// A running node. Dropping it ends all its tasks and connections without a farewell; [`ClusterNode::leave`] first is
/// the polite way.
///
/// ```no_run
/// use coord_cluster::{ClusterNode, Secret, Settings, Start};
/// use std::time::Duration;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let mut settings = Settings::new("127.0.0.1:7400".parse()?);
/// settings.secret = Some(Secret::new("shared by all nodes"));
/// settings.start = Start::with_contacts(vec!["127.0.0.1:7401".parse()?]);
/// let node = ClusterNode::start(settings).await?;
/// let mut view = node.watch();
/// view.wait_for(|view| view.converged).await?;
/// println!("led by {:?}", node.view().leader);
/// node.leave(Duration::from_secs(10)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClusterNode {
    commands: mpsc::Sender<Command>,
    view: watch::Receiver<ClusterView>,
    events: broadcast::Sender<Event>,
    counters: Counters,
    local: SocketAddr,
    _driver: AbortOnDropHandle<()>,
}

/// Why a join did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The last contact point that answered did not let this node in.
    #[error("not let in: {0}")]
    Refused(Refusal),
    /// No contact point answered.
    #[error("no contact point answered; check that they run, can be reached, and share the secret")]
    NobodyLetIn,
    /// The deadline passed. The attempt was given up.
    #[error("the deadline of the join passed")]
    TimedOut,
    /// The node has stopped, or another join or a form took the place of this one.
    #[error("the join was abandoned")]
    Abandoned,
}

/// How a node left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// Whether everybody agreed before the deadline.
    pub graceful: bool,
    /// Whether nobody was left in the cluster.
    pub last: bool,
}

/// The node's task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct NodeStopped;

impl ClusterNode {
    /// Binds the listening socket and starts the node.
    ///
    /// # Errors
    /// When the socket cannot be bound, or the address to advertise is unknown.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(settings.listen).await?;
        Self::start_on(listener, settings)
    }

    /// Starts the node on a socket that listens already; `settings.listen` is not used.
    ///
    /// # Errors
    /// When the address to advertise is unknown.
    pub fn start_on(listener: TcpListener, settings: Settings) -> io::Result<Self> {
        let local = listener.local_addr()?;
        let address = match settings.advertise {
            Some(address) => address,
            None if local.ip().is_unspecified() => {
                let hint = "listening on all interfaces: say which address to advertise";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, hint));
            }
            None => local.into(),
        };
        let me = NodeId::new(address, settings.incarnation.unwrap_or_else(Incarnation::now));
        let core = Core::new(me, settings.config, rand::random())
            .with_boxed_downing(settings.downing)
            .with_boxed_exit_gate(settings.exit_gate);
        let (commands, command_queue) = mpsc::channel(COMMAND_BACKLOG);
        let (view_sender, view) = watch::channel(core.view());
        let events = broadcast::Sender::new(EVENT_BACKLOG);
        let counters = Counters::default();
        let first = match settings.start {
            Start::Form => Some(Input::Form { cluster: None }),
            Start::Join(contacts) => Some(Input::Join {
                contacts,
                persist: true,
            }),
            Start::Wait => None,
        };
        let driver = Driver::new(core, settings.secret, view_sender, events.clone(), counters.clone());
        let task = tokio::spawn(driver.run(listener, command_queue, first));
        Ok(Self {
            commands,
            view,
            events,
            counters,
            local,
            _driver: AbortOnDropHandle::new(task),
        })
    }

    /// The socket that this node listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// This node's address and current incarnation.
    pub fn self_node(&self) -> NodeId {
        self.view.borrow().self_node.clone()
    }

    /// The latest view of the cluster.
    pub fn view(&self) -> ClusterView {
        self.view.borrow().clone()
    }

    /// The latest view, and every later one.
    pub fn watch(&self) -> watch::Receiver<ClusterView> {
        self.view.clone()
    }

    /// What happens from here on, event by event.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// What the transport counted.
    pub fn stats(&self) -> Stats {
        self.counters.snapshot()
    }

    /// Forms a cluster of one's own, with this id or a random one. Does nothing in a cluster.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn form(&self, cluster: Option<ClusterId>) -> Result<(), NodeStopped> {
        self.input(Input::Form { cluster }).await
    }

    /// Asks the contact points once each, in turn, to be let in; resolves when one has. A node that is already in a
    /// cluster takes the whole cluster along and adopts the other's id. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// When nobody lets this node in by the deadline.
    pub async fn join(&self, contacts: Vec<Address>, within: Duration) -> Result<ClusterId, JoinError> {
        let (reply, answer) = oneshot::channel();
        self.join_by(Command::Join { contacts, reply }, answer, within).await
    }

    /// Asks the contact points once each, in turn, to be let into this cluster and no other; for a node that is in none.
    /// Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// When nobody lets this node in by the deadline, or it is in a cluster already.
    pub async fn enter(
        &self,
        cluster: ClusterId,
        contacts: Vec<Address>,
        within: Duration,
    ) -> Result<ClusterId, JoinError> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Enter {
            cluster,
            contacts,
            reply,
        };
        self.join_by(command, answer, within).await
    }

    async fn join_by(
        &self,
        command: Command,
        answer: oneshot::Receiver<Result<ClusterId, JoinError>>,
        within: Duration,
    ) -> Result<ClusterId, JoinError> {
        self.commands.send(command).await.map_err(|_| JoinError::Abandoned)?;
        match tokio::time::timeout(within, answer).await {
            Ok(answer) => answer.unwrap_or(Err(JoinError::Abandoned)),
            Err(_) => Err(JoinError::TimedOut),
        }
    }

    /// Forgets the cluster without a word and becomes a new incarnation in none: for a node that learns that its cluster
    /// is not the right one. The others find out as they do of a crash.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn reset(&self) -> Result<(), NodeStopped> {
        self.input(Input::Reset).await
    }

    /// Leaves gracefully and stops, at the deadline in any case.
    ///
    /// # Errors
    /// When the node has stopped before.
    pub async fn leave(&self, within: Duration) -> Result<Departed, NodeStopped> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(Command::Leave { within, reply })
            .await
            .map_err(|_| NodeStopped)?;
        answer.await.map_err(|_| NodeStopped)
    }

    /// Tells another node to leave gracefully.
    ///
    /// # Errors
    /// When this node has stopped.
    pub async fn ask_to_leave(&self, node: NodeId) -> Result<(), NodeStopped> {
        self.input(Input::Leave {
            node: Some(node),
            within: Duration::from_secs(30),
        })
        .await
    }

    /// Puts a node down. If it is alive it comes back as a new incarnation.
    ///
    /// # Errors
    /// When this node has stopped.
    pub async fn down(&self, node: NodeId) -> Result<(), NodeStopped> {
        self.input(Input::Down { node }).await
    }

    /// Gossips with whoever is at this address: if it is in the same cluster, and the two do not know each other, their views
    /// become one.
    ///
    /// # Errors
    /// When this node has stopped.
    pub async fn meet(&self, address: Address) -> Result<(), NodeStopped> {
        self.input(Input::Meet { address }).await
    }

    /// Stores a value in the gossip state of the whole cluster, or removes it.
    ///
    /// # Errors
    /// When it is too large, there is no room, or the node is in no cluster or has stopped.
    pub async fn set_meta(&self, key: String, value: Option<Vec<u8>>) -> Result<(), MetaError> {
        let (reply, answer) = oneshot::channel();
        let command = Command::SetMeta { key, value, reply };
        self.commands.send(command).await.map_err(|_| MetaError::Stopped)?;
        answer.await.unwrap_or(Err(MetaError::Stopped))
    }

    async fn input(&self, input: Input) -> Result<(), NodeStopped> {
        self.commands.send(Command::Input(input)).await.map_err(|_| NodeStopped)
    }
}
