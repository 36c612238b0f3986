//! Private etcd and ZooKeeper servers and a fault-injecting TCP proxy for tests
