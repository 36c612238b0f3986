//! The links between the members, one for each pair and direction.

use crate::{ports::ReservedPort, proxy::Proxy};
use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet, spawn_blocking},
};

/// All members see the same address of a member, so a connection does not tell who made it. A gate at that address asks
/// the kernel, and sends it through the proxy of that pair.
#[derive(Debug)]
pub(super) struct Gates {
    links: Arc<Links>,
    ports: Vec<ReservedPort>,
    acceptors: Vec<AbortHandle>,
}

#[derive(Debug)]
struct Links {
    /// Process ids, which stay the same only until the next start: see [`Gates::belongs_to`].
    pids: Vec<AtomicU32>,
    /// By who connects, then to whom.
    proxies: Vec<Vec<Proxy>>,
}

impl Gates {
    pub(super) async fn start(peers: &[SocketAddr]) -> Self {
        let mut proxies = Vec::new();
        for _ in peers {
            let mut of_one = Vec::new();
            for peer in peers {
                of_one.push(Proxy::start(*peer).await);
            }
            proxies.push(of_one);
        }
        let links = Arc::new(Links {
            pids: peers.iter().map(|_| AtomicU32::new(0)).collect(),
            proxies,
        });
        let ports: Vec<ReservedPort> = peers.iter().map(|_| ReservedPort::new()).collect();
        let acceptors = ports.iter().enumerate().map(|(to, port)| {
            let accepting = accept(port.listen(), links.clone(), to);
            tokio::spawn(accepting).abort_handle()
        });
        Self {
            acceptors: acceptors.collect(),
            links,
            ports,
        }
    }

    pub(super) fn addrs(&self) -> Vec<SocketAddr> {
        self.ports.iter().map(ReservedPort::addr).collect()
    }

    /// Member `i` is now this process.
    pub(super) fn belongs_to(&self, i: usize, pid: Option<u32>) {
        self.links.pids[i].store(pid.unwrap_or_default(), Relaxed);
    }

    pub(super) fn isolate(&self, i: usize) {
        for (from, proxies) in self.links.proxies.iter().enumerate() {
            for (to, proxy) in proxies.iter().enumerate() {
                if from != to && (from == i || to == i) {
                    proxy.black_hole();
                }
            }
        }
    }

    pub(super) fn rejoin(&self) {
        self.links.proxies.iter().flatten().for_each(Proxy::pass);
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.acceptors.iter().for_each(AbortHandle::abort);
    }
}

async fn accept(listener: TcpListener, links: Arc<Links>, to: usize) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                if let Ok((client, addr)) = accepted {
                    connections.spawn(pass(links.clone(), client, addr, to));
                }
            }
        }
    }
}

async fn pass(links: Arc<Links>, client: TcpStream, addr: SocketAddr, to: usize) {
    let known = links.clone();
    // The tables of a busy machine are long.
    let from = spawn_blocking(move || known.who(addr)).await;
    // Who is not known may not pass; a member tries again.
    if let Ok(Some(from)) = from {
        links.proxies[from][to].serve(client).await;
    }
}

impl Links {
    /// Which member has the socket of this local address.
    fn who(&self, addr: SocketAddr) -> Option<usize> {
        let socket = format!("socket:[{}]", inode(addr)?);
        self.pids.iter().position(|pid| {
            let Ok(open) = fs::read_dir(format!("/proc/{}/fd", pid.load(Relaxed))) else {
                return false;
            };
            open.flatten()
                .any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target.as_os_str() == socket.as_str()))
        })
    }
}

fn inode(addr: SocketAddr) -> Option<u64> {
    let port = format!(":{:04X}", addr.port());
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    // sl, local, remote, state, queues, timer, retransmits, uid, timeout, inode
    let of_port = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    of_port
        .filter(|fields| fields.get(1).is_some_and(|local| local.ends_with(&port)))
        .find_map(|fields| fields.get(9)?.parse().ok().filter(|inode| *inode != 0))
}
