//! etcd v3 driver of coord-api
