//! The links between the servers, one for each pair and direction.

use super::config::Ports;
use crate::proxy::Proxy;
use std::net::SocketAddr;

/// Each server has a configuration of its own, so each sees the others at addresses of its own.
#[derive(Debug)]
pub(super) struct Ways(Vec<Way>);

#[derive(Debug)]
struct Way {
    from: usize,
    to: usize,
    quorum: Proxy,
    election: Proxy,
}

impl Ways {
    pub(super) async fn start(ports: &[Ports]) -> Self {
        let mut ways = Vec::new();
        for from in 0..ports.len() {
            for (to, ports) in ports.iter().enumerate().filter(|(to, _)| *to != from) {
                ways.push(Way {
                    from,
                    to,
                    quorum: Proxy::start(ports.quorum.addr()).await,
                    election: Proxy::start(ports.election.addr()).await,
                });
            }
        }
        Self(ways)
    }

    /// Where `from` finds `to`: its quorum and its election port.
    pub(super) fn of(&self, from: usize, to: usize) -> (SocketAddr, SocketAddr) {
        let way = self.0.iter().find(|way| way.from == from && way.to == to);
        let way = way.expect("a way between every two servers");
        (way.quorum.addr(), way.election.addr())
    }

    pub(super) fn isolate(&self, i: usize) {
        for way in self.0.iter().filter(|way| way.from == i || way.to == i) {
            way.quorum.black_hole();
            way.election.black_hole();
        }
    }

    pub(super) fn rejoin(&self) {
        for way in &self.0 {
            way.quorum.pass();
            way.election.pass();
        }
    }
}
