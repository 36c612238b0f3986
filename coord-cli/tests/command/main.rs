//! The real binary, as processes, on real etcd and ZooKeeper servers and on memory.

mod by_hand;
mod elections;
mod helps;
mod measures;
mod nonsense;
mod outages;
mod services;
mod store;
mod support;
