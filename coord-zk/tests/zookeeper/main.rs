//! The driver on real ZooKeeper servers.

mod conformance;
mod support;
