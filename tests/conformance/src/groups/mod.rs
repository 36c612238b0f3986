//! The behaviours, a file per part of the contract. Their names and promises stand in the list.

pub(crate) mod conditional;
pub(crate) mod entries;
pub(crate) mod expiry;
pub(crate) mod leases;
pub(crate) mod parents;
pub(crate) mod reads;
