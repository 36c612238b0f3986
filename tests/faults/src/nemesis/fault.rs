use std::fmt;

use crate::client::Store;
use crate::history::Trouble;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// kill -9 of servers, and a start later.
    Kill(Server),
    /// SIGSTOP of servers, and SIGCONT later.
    Pause(Server),
    /// An orderly stop of servers, and a start at once.
    Restart(Server),
    /// Servers that reach clients and no other server; of a majority, nobody reaches anybody.
    Partition(Server),
    /// kill -9 of a client, and another one in its place later.
    KillClient,
    /// SIGSTOP of a client, and SIGCONT later.
    PauseClient,
    /// A client that closes, and another one in its place.
    RestartClient,
    /// Something with the ways of one client.
    Way(Way),
    /// One client cut off; meanwhile all work ends. Nothing comes after it.
    CutToTheEnd,
    /// The same as `Way` with the ways of all clients.
    AllWays(Way),
    /// The same with the ways of all clients to one server.
    OneServer(Way),
    /// Leadership handed over among the servers (etcd).
    Transfer,
    /// Compaction and defragmentation (etcd).
    Compact,
    /// A leader's lease revoked, or its session closed, by a third party.
    Revoke,
    /// A store that is full, and is cleared later (etcd).
    Full,
    /// A server removed, wiped, and added anew.
    Replace,
}

/// Which servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// The one that leads.
    Leader,
    /// One that does not.
    Follower,
    /// Two of three.
    Majority,
}

/// What a proxy does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Connections close, and new ones are refused.
    Cut,
    /// Everything is swallowed, and connections stay open.
    HalfOpen,
    /// Everything is late.
    Delay,
    /// Answers are late; once a leader behind them was renewed all the same, everything is swallowed.
    SlowThenSilent,
    /// Connections are reset again and again.
    Reset,
    /// Requests arrive, answers do not.
    DropAnswers,
    /// Requests are kept, and arrive later.
    LateRequests,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 7] = [
        Way::Cut,
        Way::HalfOpen,
        Way::Delay,
        Way::SlowThenSilent,
        Way::Reset,
        Way::DropAnswers,
        Way::LateRequests,
    ];
}

impl Fault {
    /// All that this store knows.
    pub fn all(store: Store) -> Vec<Fault> {
        let mut faults = vec![
            Fault::KillClient,
            Fault::PauseClient,
            Fault::RestartClient,
            Fault::Revoke,
            Fault::Replace,
        ];
        for server in [Server::Leader, Server::Follower, Server::Majority] {
            faults.extend([Fault::Kill(server), Fault::Pause(server)]);
            faults.extend([Fault::Restart(server), Fault::Partition(server)]);
        }
        for way in Way::ALL {
            faults.extend([Fault::Way(way), Fault::AllWays(way)]);
        }
        faults.extend([Fault::OneServer(Way::Cut), Fault::OneServer(Way::HalfOpen)]);
        if store == Store::Etcd {
            faults.extend([Fault::Transfer, Fault::Compact, Fault::Full]);
        }
        faults
    }

    /// What it may disturb.
    pub fn trouble(self) -> Trouble {
        match self {
            Fault::KillClient | Fault::PauseClient | Fault::RestartClient => Trouble::Client,
            Fault::Way(_) | Fault::AllWays(_) | Fault::OneServer(_) | Fault::CutToTheEnd => Trouble::Ways,
            _ => Trouble::Servers,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |what: &str, server: &Server| format!("{what} {}", format!("{server:?}").to_lowercase());
        f.write_str(&match self {
            Fault::Kill(server) => of("kill", server),
            Fault::Pause(server) => of("pause", server),
            Fault::Restart(server) => of("restart", server),
            Fault::Partition(server) => of("partition", server),
            Fault::KillClient => "kill client".into(),
            Fault::PauseClient => "pause client".into(),
            Fault::RestartClient => "restart client".into(),
            Fault::Way(way) => format!("{way} one client"),
            Fault::AllWays(way) => format!("{way} all clients"),
            Fault::OneServer(way) => format!("{way} one server"),
            Fault::CutToTheEnd => "cut one client to the end".into(),
            Fault::Transfer => "transfer leadership".into(),
            Fault::Compact => "compact and defragment".into(),
            Fault::Revoke => "revoke a leader's lease".into(),
            Fault::Full => "full store".into(),
            Fault::Replace => "replace a member".into(),
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Cut => "cut",
            Way::HalfOpen => "half-open",
            Way::Delay => "delay",
            Way::SlowThenSilent => "slow, then half-open,",
            Way::Reset => "reset",
            Way::DropAnswers => "answers dropped",
            Way::LateRequests => "late requests",
        })
    }
}
