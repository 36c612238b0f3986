use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_api::{Capabilities, Env, Error, Key, Operation, Result};

use crate::EtcdConfig;
use crate::keyspace::Keyspace;
use crate::leases::Leases;
use crate::ledger::Ledger;
use crate::pool::{Call, Pool, Repeat};

/// What all handles of one coordinator share; the operations are methods of it, in the files named after them.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) pool: Arc<Pool>,
    pub(crate) space: Keyspace,
    pub(crate) leases: Leases,
    pub(crate) ledger: Ledger,
    call_deadline: Duration,
    closed: AtomicBool,
}

impl Core {
    pub(crate) fn open(config: &EtcdConfig, env: Env) -> Result<Core> {
        let space = Keyspace::new(&config.root);
        Ok(Core {
            pool: Pool::open(config, env.clone(), &space)?,
            leases: Leases::new(&env),
            ledger: Ledger::default(),
            space,
            env,
            call_deadline: config.call_deadline,
            closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            driver: "etcd",
            max_ttl: Duration::from_secs(365 * 86_400),
            expiry_slack: Duration::from_millis(1500),
            renewals_per_ttl: 3,
            max_value: Capabilities::MAX_VALUE,
            call_deadline: self.call_deadline,
        }
    }

    /// A call that begins now.
    pub(crate) fn call(&self, limit: Duration, repeat: Repeat) -> Call {
        Call {
            start: self.env.now(),
            limit,
            repeat,
            at_least: 0,
        }
    }

    pub(crate) fn check_open(&self, operation: Operation, key: Option<&Key>) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed(operation, key));
        }
        Ok(())
    }

    /// Returns whether it was open until now.
    pub(crate) fn set_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }
}
