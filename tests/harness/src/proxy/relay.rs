//! One connection through the proxy.

use super::{
    Control, Direction, Flow, Shared,
    pump::{Broken, pump},
};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use tokio::{io::AsyncReadExt, net::TcpStream, sync::watch};

/// A connection that a client has made, from its acceptance to its end.
#[derive(Debug)]
pub(crate) struct Relay {
    client: TcpStream,
    epoch: u64,
    live: Live,
}

/// Counts a connection as live for as long as it exists, also if its task is aborted.
#[derive(Debug)]
struct Live(Arc<Shared>);

/// How both sockets are closed in the end.
enum End {
    Close,
    Reset,
}

impl Relay {
    pub(crate) fn new(shared: Arc<Shared>, client: TcpStream) -> Self {
        let epoch = shared.control.borrow().epoch;
        shared.counters.live.fetch_add(1, Relaxed);
        Self {
            client,
            epoch,
            live: Live(shared),
        }
    }

    pub(crate) async fn run(self) {
        let Self {
            mut client,
            epoch,
            live,
        } = self;
        let shared = &live.0;
        let mut control = shared.control.subscribe();
        let mut server = None;
        let end = tokio::select! {
            biased;
            by_reset = ended(&mut control, epoch) => if by_reset { End::Reset } else { End::Close },
            end = relay(shared, &mut client, &mut server) => end,
        };
        if matches!(end, End::Reset) {
            for socket in server.iter().chain([&client]) {
                // Fails only if the socket is already dead.
                let _ = socket.set_zero_linger();
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.counters.live.fetch_sub(1, Relaxed);
    }
}

/// Waits until all connections of `epoch` have to end; whether by a reset.
async fn ended(control: &mut watch::Receiver<Control>, epoch: u64) -> bool {
    match control.wait_for(|control| control.epoch != epoch).await {
        Ok(control) => control.by_reset,
        Err(_) => false,
    }
}

async fn relay(shared: &Shared, client: &mut TcpStream, server: &mut Option<TcpStream>) -> End {
    if let Err(end) = unheard(shared, client).await {
        return end;
    }
    let Ok(stream) = TcpStream::connect(shared.target).await else {
        return End::Reset;
    };
    let server = server.insert(stream);
    // Both had to be connected to be told.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (client_reader, client_writer) = client.split();
    let (server_reader, server_writer) = server.split();
    let relayed = tokio::try_join!(
        pump(shared, Direction::ToServer, client_reader, server_writer),
        pump(shared, Direction::ToClient, server_reader, client_writer),
    );
    match relayed {
        Ok(_) => End::Close,
        Err(Broken) => End::Reset,
    }
}

/// While requests are dropped, the server must not even see the connection. Returns when it may; a client that has
/// talked to nobody until then has lost bytes, and is reset.
async fn unheard(shared: &Shared, client: &mut TcpStream) -> Result<(), End> {
    let mut control = shared.control.subscribe();
    let mut buffer = [0; 4096];
    let mut lost = false;
    loop {
        tokio::select! {
            biased;
            _ = control.wait_for(|control| control.flow(Direction::ToServer) != Flow::Drop) => {
                return if lost { Err(End::Reset) } else { Ok(()) };
            }
            read = client.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return Err(End::Close),
                Ok(n) => {
                    lost = true;
                    shared.counters.of(Direction::ToServer).received.fetch_add(n as u64, Relaxed);
                }
            }
        }
    }
}
