//! Gossip membership after the Akka Cluster Specification
