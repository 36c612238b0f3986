use crate::{Error, ErrorKind, Key, Operation, Result};

/// The settings of a [`Registry`](crate::Registry).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryConfig {
    /// Where the services lie. Default: `/services`.
    pub prefix: Key,
    /// Who this process is, across its restarts: a host name and port, a pod of a stateful set, a machine id. Entries
    /// of the same owner are its own older ones, and are replaced at once; those of others never. So no two processes
    /// that run at the same time may share it.
    pub owner: String,
    /// How many entries are written at the same time. Default: 64.
    pub pipeline: usize,
}

impl RegistryConfig {
    /// The defaults, for this owner.
    pub fn new(owner: impl Into<String>) -> RegistryConfig {
        RegistryConfig {
            prefix: default_prefix(),
            owner: owner.into(),
            pipeline: 64,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let problem = if self.owner.is_empty() {
            "registry: the owner is empty; name this process so that it knows its entries after a restart"
        } else if self.pipeline == 0 {
            "registry: a pipeline of 0 would write nothing; 64 is a good value"
        } else {
            return Ok(());
        };
        let kind = ErrorKind::InvalidConfig(problem.into());
        Err(Error::definite(Operation::Open, None, kind))
    }
}

/// Where services lie if nobody says otherwise.
pub(super) fn default_prefix() -> Key {
    Key::root().child("services").unwrap_or_else(|_| Key::root())
}
