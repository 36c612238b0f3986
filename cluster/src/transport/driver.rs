use std::collections::BTreeMap;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::channel::{read_channel, write_channel};
use super::node::{Departed, JoinError};
use super::secret::Secret;
use super::stats::Counters;
use crate::{Address, ClusterId, ClusterView, Core, Envelope, Event, Input, MetaError, Output, Phase, Refusal};

/// Messages waiting for the core; beyond that they are dropped and counted.
const INBOX: usize = 1024;
/// Messages waiting for one peer.
const OUTBOX: usize = 64;
/// The most channels in each direction.
const MAX_CHANNELS: usize = 4096;
/// The wait after the system refused to accept a connection, usually for want of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A timer that is never needed earlier.
const FAR: Duration = Duration::from_secs(3600);

/// What the handle asks of the driver.
#[derive(Debug)]
pub(super) enum Command {
    Input(Input),
    Join {
        contacts: Vec<Address>,
        reply: oneshot::Sender<Result<ClusterId, JoinError>>,
    },
    SetMeta {
        key: String,
        value: Option<Vec<u8>>,
        reply: oneshot::Sender<Result<(), MetaError>>,
    },
    Enter {
        cluster: ClusterId,
        contacts: Vec<Address>,
        reply: oneshot::Sender<Result<ClusterId, JoinError>>,
    },
    Leave {
        within: Duration,
        reply: oneshot::Sender<Departed>,
    },
}

/// Owns the core and all tasks around it; when it is dropped, they end.
pub(super) struct Driver {
    core: Core,
    started: Instant,
    secret: Option<Secret>,
    view: watch::Sender<ClusterView>,
    events: broadcast::Sender<Event>,
    counters: Counters,
    peers: BTreeMap<Address, mpsc::Sender<Envelope>>,
    writers: JoinSet<()>,
    joining: Option<oneshot::Sender<Result<ClusterId, JoinError>>>,
    /// Why a contact point did not let this node in.
    refused: Option<Refusal>,
    leaving: Vec<oneshot::Sender<Departed>>,
    left: Option<Departed>,
}

impl Driver {
    pub(super) fn new(
        core: Core,
        secret: Option<Secret>,
        view: watch::Sender<ClusterView>,
        events: broadcast::Sender<Event>,
        counters: Counters,
    ) -> Self {
        Self {
            core,
            started: Instant::now(),
            secret,
            view,
            events,
            counters,
            peers: BTreeMap::new(),
            writers: JoinSet::new(),
            joining: None,
            refused: None,
            leaving: Vec::new(),
            left: None,
        }
    }

    pub(super) async fn run(
        mut self,
        listener: TcpListener,
        mut commands: mpsc::Receiver<Command>,
        first: Option<Input>,
    ) {
        let (sender, mut inbox) = mpsc::channel(INBOX);
        let mut acceptor = JoinSet::new();
        let reader = Reader {
            me: self.core.self_node().address.clone(),
            secret: self.secret.clone(),
            inbox: sender,
            counters: self.counters.clone(),
        };
        acceptor.spawn(accept(listener, reader, MAX_CHANNELS));
        if let Some(input) = first {
            self.step(input);
        }
        loop {
            let wake = self.started + self.core.next_wake().min(self.started.elapsed() + FAR);
            tokio::select! {
                biased;
                // Time first: a flood of messages must not keep the heartbeats from being sent.
                () = tokio::time::sleep_until(wake) => self.step(Input::Tick),
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                () = abandoned(&mut self.joining) => {
                    self.joining = None;
                    self.step(Input::AbandonJoin);
                }
                Some(_) = self.writers.join_next(), if !self.writers.is_empty() => {}
                Some(envelope) = inbox.recv() => self.step(Input::Receive(envelope)),
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Input(input) => self.step(input),
            Command::Join { contacts, reply } => {
                // The one before, if any, learns that it was abandoned.
                self.joining = Some(reply);
                self.refused = None;
                self.step(Input::Join {
                    contacts,
                    persist: false,
                });
            }
            Command::SetMeta { key, value, reply } => {
                let answer = self.core.may_set_meta(&key, value.as_deref());
                if answer.is_ok() {
                    self.step(Input::SetMeta { key, value });
                }
                // Whoever asked may have gone; then nobody needs the answer.
                let _ = reply.send(answer);
            }
            Command::Enter {
                cluster,
                contacts,
                reply,
            } => {
                self.joining = Some(reply);
                self.refused = None;
                self.step(Input::Enter { cluster, contacts });
            }
            Command::Leave { within, reply } => match self.left {
                Some(departed) => {
                    let _ = reply.send(departed);
                }
                None => {
                    self.leaving.push(reply);
                    self.step(Input::Leave { node: None, within });
                }
            },
        }
    }

    fn step(&mut self, input: Input) {
        let phase = self.core.phase();
        let outputs = self.core.handle(input, self.started.elapsed());
        let mut changed = phase != self.core.phase();
        let mut news = Vec::new();
        for output in outputs {
            match output {
                Output::Send(envelope) => self.send(envelope),
                Output::Dropped(reason) => self.counters.dropped(reason),
                Output::Led(_) => {}
                Output::Event(event) => {
                    changed = true;
                    news.push(event);
                }
            }
        }
        if changed {
            // The view first: whoever acts on an event finds it there.
            self.view.send_replace(self.core.view());
        }
        for event in news {
            self.tell(event);
        }
    }

    fn tell(&mut self, event: Event) {
        tracing::debug!(node = %self.core.self_node(), ?event, "cluster event");
        let outcome = match &event {
            Event::Joined { cluster } => Some(Ok(*cluster)),
            Event::AlreadyTogether => Some(Ok(self.core.cluster())),
            Event::JoinFailed => Some(Err(self.refused.map_or(JoinError::NobodyLetIn, JoinError::Refused))),
            Event::Formed { .. } => Some(Err(JoinError::Abandoned)),
            _ => None,
        };
        if let Some((reply, outcome)) = self.joining.take_if(|_| outcome.is_some()).zip(outcome) {
            // Whoever asked may have gone; then nobody needs the answer.
            let _ = reply.send(outcome);
        }
        match event {
            Event::Refused { refusal, .. } => self.refused = Some(refusal),
            Event::Left { graceful, last } => {
                let departed = Departed { graceful, last };
                self.left = Some(departed);
                for reply in self.leaving.drain(..) {
                    let _ = reply.send(departed);
                }
            }
            _ => {}
        }
        // Without a reader there is nobody to tell.
        let _ = self.events.send(event);
    }

    fn send(&mut self, envelope: Envelope) {
        let open = self.peers.get(&envelope.to).filter(|queue| !queue.is_closed());
        let queue = match open {
            Some(queue) => queue.clone(),
            None => match self.open(envelope.to.clone()) {
                Some(queue) => queue,
                None => return self.counters.undelivered(),
            },
        };
        if queue.try_send(envelope).is_err() {
            self.counters.undelivered();
        }
    }

    fn open(&mut self, peer: Address) -> Option<mpsc::Sender<Envelope>> {
        self.peers.retain(|_, queue| !queue.is_closed());
        if self.peers.len() >= MAX_CHANNELS || self.writers.len() >= MAX_CHANNELS {
            return None;
        }
        let (queue, receiver) = mpsc::channel(OUTBOX);
        self.writers.spawn(write_channel(
            peer.clone(),
            self.secret.clone(),
            receiver,
            self.counters.clone(),
        ));
        self.peers.insert(peer, queue.clone());
        Some(queue)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.view.send_modify(|view| view.phase = Phase::Stopped);
    }
}

/// Resolves when whoever asked to join no longer waits for the answer.
async fn abandoned(joining: &mut Option<oneshot::Sender<Result<ClusterId, JoinError>>>) {
    match joining {
        Some(reply) => reply.closed().await,
        None => std::future::pending().await,
    }
}

/// What each incoming channel needs.
#[derive(Clone)]
struct Reader {
    me: Address,
    secret: Option<Secret>,
    inbox: mpsc::Sender<Envelope>,
    counters: Counters,
}

async fn accept(listener: TcpListener, reader: Reader, most: usize) {
    let mut channels = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = channels.join_next(), if !channels.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if channels.len() < most => {
                    // Without it the greeting only waits; nothing breaks.
                    let _ = stream.set_nodelay(true);
                    let Reader { me, secret, inbox, counters } = reader.clone();
                    channels.spawn(read_channel(stream, me, secret, inbox, counters));
                }
                Ok(_) => reader.counters.undelivered(),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    use super::*;

    /// Connects, and says whether the node greets; it hangs up at once on those who are too many.
    async fn connect(to: std::net::SocketAddr) -> (TcpStream, bool) {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let greeted = stream.read_exact(&mut [0; 20]).await.is_ok();
        (stream, greeted)
    }

    #[tokio::test]
    async fn a_flood_of_connections_is_bounded_and_strangers_who_say_nothing_make_room_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let (inbox, _messages) = mpsc::channel(1);
        let reader = Reader {
            me: to.into(),
            secret: None,
            inbox,
            counters: Counters::default(),
        };
        let mut acceptor = JoinSet::new();
        acceptor.spawn(accept(listener, reader.clone(), 3));
        let mut strangers = Vec::new();
        for _ in 0..3 {
            let (stranger, greeted) = connect(to).await;
            assert!(greeted);
            strangers.push(stranger);
        }
        assert!(!connect(to).await.1, "there is room for three");
        assert_eq!(reader.counters.snapshot().undelivered, 1);
        for mut stranger in strangers {
            // The node hangs up on whoever says nothing: an end, not a minute of waiting.
            let _ = stranger.read(&mut [0; 1]).await;
        }
        let (_friend, greeted) = connect(to).await;
        assert!(greeted);
    }
}
