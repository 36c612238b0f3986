//! Ports that stay ours.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// A free loopback port, kept for its owner as long as this lives, even while nobody listens on it.
///
/// A port that is picked and released can be taken by anyone before the server binds it, or while the server is down
/// between a kill and a restart. This holds a socket bound to it that never listens. Linux then gives the port neither
/// to a bind to port 0 nor to an outgoing connection, while a server that sets `SO_REUSEADDR` (etcd, ZooKeeper and our
/// proxy do) may still bind and listen, and connecting while none does is refused. So no start needs a second try.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    addr: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    pub(crate) fn new() -> Self {
        let socket = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let addr = socket.local_addr().expect("a bound socket has an address");
        Self { addr, _socket: socket }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Listens on the port from within this process; needs a tokio runtime's context.
    pub(crate) fn listen(&self) -> TcpListener {
        bound(self.addr)
            .listen(1024)
            .expect("listening on a reserved loopback port")
    }
}

fn bound(addr: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a TCP socket");
    socket.set_reuseaddr(true).expect("SO_REUSEADDR");
    socket.bind(addr).expect("binding a loopback port");
    socket
}
