//! The coordination contract: one trait over etcd, ZooKeeper and memory, and the recipes written against it
