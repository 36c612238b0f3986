//! ZooKeeper driver of coord-api
