//! The behaviours, a file per part of the contract. Their names and promises stand in the list.

pub(crate) mod bad_input;
pub(crate) mod closing;
pub(crate) mod concurrency;
pub(crate) mod conditional;
pub(crate) mod deadlines;
pub(crate) mod entries;
pub(crate) mod expiry;
pub(crate) mod leases;
pub(crate) mod parents;
pub(crate) mod prefix;
pub(crate) mod reads;
pub(crate) mod settling;
pub(crate) mod standing;
pub(crate) mod watch_load;
pub(crate) mod watches;
