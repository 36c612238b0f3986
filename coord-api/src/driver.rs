//! For those who write a driver: the parts that every driver needs, and that must be the same in all of them.
//!
//! A driver implements [`Coordinator`](crate::Coordinator), checks its input with the functions here before it sends
//! anything, and hands out watches through [`mailbox`]. The package `coord-conformance` then tells what it owes.

pub use crate::watch::{WatchSender, mailbox};

use std::time::Duration;

use crate::{Capabilities, Create, CreateMode, Error, ErrorKind, InvalidKey, Key, Operation, Result};

/// Refuses what no driver may send: the root as an entry, a name that only the store may choose, a value over the limit.
pub fn check_create(create: &Create, capabilities: &Capabilities) -> Result<()> {
    check_attempt(Operation::Create, create, capabilities)
}

/// The same of a create that is given up: what could not be sent is nothing to give up.
pub fn check_abandon(create: &Create, capabilities: &Capabilities) -> Result<()> {
    check_attempt(Operation::Abandon, create, capabilities)
}

fn check_attempt(operation: Operation, create: &Create, capabilities: &Capabilities) -> Result<()> {
    let key = &create.key;
    if !matches!(create.mode, CreateMode::Sequential(_)) {
        check_entry_key(operation, key)?;
        if key.is_sequential() {
            return Err(invalid(
                operation,
                key,
                "names that begin with '~' are chosen by the store",
            ));
        }
    }
    check_value(operation, key, create.value.len(), capabilities)
}

/// Refuses the root where an entry is meant.
pub fn check_entry_key(operation: Operation, key: &Key) -> Result<()> {
    if key.is_root() {
        return Err(invalid(operation, key, "the root is not an entry"));
    }
    Ok(())
}

/// Refuses a value over the limit.
pub fn check_value(operation: Operation, key: &Key, size: usize, capabilities: &Capabilities) -> Result<()> {
    let limit = capabilities.max_value;
    if size > limit {
        return Err(Error::definite(
            operation,
            Some(key),
            ErrorKind::ValueTooLarge { size, limit },
        ));
    }
    Ok(())
}

/// Refuses a ttl of zero and an absurd one.
pub fn check_ttl(ttl: Duration, capabilities: &Capabilities) -> Result<()> {
    let max = capabilities.max_ttl;
    if ttl.is_zero() || ttl > max {
        return Err(Error::definite(
            Operation::Grant,
            None,
            ErrorKind::InvalidTtl { ttl, max },
        ));
    }
    Ok(())
}

fn invalid(operation: Operation, key: &Key, rule: &'static str) -> Error {
    let invalid = InvalidKey {
        key: key.to_string(),
        rule,
    };
    Error::definite(operation, Some(key), ErrorKind::InvalidKey(invalid))
}
