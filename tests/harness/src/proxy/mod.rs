//! A TCP proxy that injects faults.

mod flow;
mod pump;
mod relay;
mod stats;

pub use flow::{Direction, Flow};
pub use stats::{Stats, Traffic};

use crate::ports::ReservedPort;
use relay::Relay;
use stats::Counters;
use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// A TCP proxy in front of one server, whose faults can be switched while connections live.
///
/// Whatever a client or the server sends after a switch has returned obeys it. New connections obey it as well: while
/// requests are dropped, a new connection is accepted and the server hears nothing of it.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    acceptor: AbortHandle,
    runtime: Handle,
}

/// What the connections watch.
#[derive(Debug, Clone, Copy, Default)]
struct Control {
    to_server: Flow,
    to_client: Flow,
    /// Connections of an earlier epoch than this have to end, by a reset or an orderly close.
    epoch: u64,
    by_reset: bool,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    control: watch::Sender<Control>,
    counters: Counters,
    /// None while cut. Its lock also orders accepting a connection against ending all that exist.
    listener: Mutex<Option<TcpListener>>,
    port: ReservedPort,
}

impl Proxy {
    /// Starts a proxy on a free loopback port in front of `target`; everything passes.
    pub async fn start(target: SocketAddr) -> Self {
        let port = ReservedPort::new();
        let shared = Arc::new(Shared {
            target,
            control: watch::Sender::new(Control::default()),
            counters: Counters::default(),
            listener: Mutex::new(Some(port.listen())),
            port,
        });
        let acceptor = tokio::spawn(accept(shared.clone())).abort_handle();
        Self {
            shared,
            acceptor,
            runtime: Handle::current(),
        }
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.shared.port.addr()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// Heals everything: listens again, forwards, delivers what was held, resets connections that lost bytes.
    pub fn pass(&self) {
        self.set_both(Flow::Pass);
        self.listen();
    }

    /// Sets one direction's flow and leaves the other as it is.
    pub fn set(&self, direction: Direction, flow: Flow) {
        self.shared
            .control
            .send_modify(|control| *control.flow_mut(direction) = flow);
    }

    /// Sets the flow of both directions.
    pub fn set_both(&self, flow: Flow) {
        self.shared
            .control
            .send_modify(|control| (control.to_server, control.to_client) = (flow, flow));
    }

    /// Delays both directions by `delay` each.
    pub fn delay(&self, delay: Duration) {
        self.set_both(Flow::Delay(delay));
    }

    /// Forwards `bytes` per `every` in both directions.
    pub fn trickle(&self, bytes: usize, every: Duration) {
        self.set_both(Flow::Trickle { bytes, every });
    }

    /// Swallows everything in both directions and keeps connections open.
    pub fn black_hole(&self) {
        self.set_both(Flow::Drop);
    }

    /// Requests reach the server, its answers are swallowed.
    pub fn drop_answers(&self) {
        self.set(Direction::ToClient, Flow::Drop);
    }

    /// Keeps requests back until [`release`](Self::release): requests delivered late.
    pub fn hold_requests(&self) {
        self.set(Direction::ToServer, Flow::Hold);
    }

    /// Delivers the held requests.
    pub fn release(&self) {
        self.set(Direction::ToServer, Flow::Pass);
    }

    /// Closes all connections and refuses new ones, until [`pass`](Self::pass).
    pub fn cut(&self) {
        let mut listener = self.shared.listener();
        *listener = None;
        self.shared.end_all(false);
    }

    /// Resets all existing connections on both sides (RST); new ones are accepted as before.
    pub fn reset(&self) {
        let mut listener = self.shared.listener();
        self.shared.end_all(true);
        // A connection that the kernel has accepted and we have not exists for the client: closing the listener resets
        // it too.
        if listener.take().is_some() {
            let _context = self.runtime.enter();
            *listener = Some(self.shared.port.listen());
        }
    }

    /// Serves a connection that was accepted elsewhere, until it ends.
    pub(crate) async fn serve(&self, client: TcpStream) {
        self.shared.relay(client).run().await;
    }

    fn listen(&self) {
        let mut listener = self.shared.listener();
        if listener.is_none() {
            let _context = self.runtime.enter();
            *listener = Some(self.shared.port.listen());
            // Wakes the acceptor, which waits for changes while there is no listener.
            self.shared.control.send_modify(|_| {});
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *self.shared.listener() = None;
        // Takes the connections' tasks with it.
        self.acceptor.abort();
    }
}

impl Control {
    fn flow(&self, direction: Direction) -> Flow {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn flow_mut(&mut self, direction: Direction) -> &mut Flow {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

impl Shared {
    fn listener(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.listener.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn end_all(&self, by_reset: bool) {
        self.control.send_modify(|control| {
            control.epoch += 1;
            control.by_reset = by_reset;
        });
    }

    fn poll_accept(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<Relay> {
        let listener = self.listener();
        let Some(listener) = &*listener else {
            return Poll::Pending;
        };
        match listener.poll_accept(context) {
            Poll::Ready(Ok((client, _))) => Poll::Ready(self.relay(client)),
            // Such as a client that gave up before we came: the next call gets the next one.
            Poll::Ready(Err(_)) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn relay(self: &Arc<Self>, client: TcpStream) -> Relay {
        self.counters.accepted.fetch_add(1, Relaxed);
        Relay::new(self.clone(), client)
    }
}

async fn accept(shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut changes = shared.control.subscribe();
    loop {
        tokio::select! {
            _ = changes.changed() => {} // The listener may be another one now.
            Some(_) = connections.join_next() => {}
            relay = poll_fn(|context| shared.poll_accept(context)) => {
                connections.spawn(relay.run());
            }
        }
    }
}
