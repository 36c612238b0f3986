use std::fmt;
use std::net::SocketAddr;

use super::secret::Secret;
use crate::{Address, Config, Downing, DowningOff, ExitGate, Incarnation, NothingPending};

/// What a node does first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Form a singleton cluster.
    Form,
    /// Ask these contact points in turn, for ever.
    Join(Vec<Address>),
    /// Wait to be told.
    Wait,
}

impl Start {
    /// As the specification has it: whoever has no contact point to join is a cluster of one.
    pub fn with_contacts(contacts: Vec<Address>) -> Self {
        if contacts.is_empty() {
            Self::Form
        } else {
            Self::Join(contacts)
        }
    }
}

/// How to run a node.
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How others reach this node, when that is not the listening address.
    pub advertise: Option<Address>,
    /// The secret that all nodes of the cluster share. Without one anybody who can connect is believed.
    pub secret: Option<Secret>,
    /// Which life of the address this is; by default the time of the start.
    pub incarnation: Option<Incarnation>,
    /// What to do first.
    pub start: Start,
    /// The knobs of the protocol.
    pub config: Config,
    /// Who puts unreachable nodes down.
    pub downing: Box<dyn Downing>,
    /// The hook between leaving and exiting.
    pub exit_gate: Box<dyn ExitGate>,
}

impl Settings {
    /// Defaults for a node that listens there: no secret, waiting to be told, downing off.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            advertise: None,
            secret: None,
            incarnation: None,
            start: Start::Wait,
            config: Config::default(),
            downing: Box::new(DowningOff),
            exit_gate: Box::new(NothingPending),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("listen", &self.listen)
            .field("advertise", &self.advertise)
            .field("secret", &self.secret)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
