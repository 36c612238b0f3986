//! `coord run` and its companions as processes, on real etcd and ZooKeeper: copies that are killed with -9, stopped and cut
//! off, and what their jobs did meanwhile, by a clock that all processes of a machine share.
//!
//! Scenes that need no server of their own share one, side by side. `COORD_SCENE=<name>` plays that one alone.

mod beats;
mod checkpoints;
mod codes;
mod faults;
mod group;
mod guardian;
mod once;
mod stage;
mod turns;

use stage::{Kind, play};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_turns() {
    play(Kind::Etcd, turns::SCENES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zookeeper_turns() {
    play(Kind::ZooKeeper, turns::SCENES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_faults() {
    play(Kind::Etcd, &[faults::SCENES, faults::OF_ETCD].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zookeeper_faults() {
    play(Kind::ZooKeeper, faults::SCENES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_exit_codes() {
    play(Kind::Etcd, &[codes::SCENES, codes::OF_ETCD].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zookeeper_exit_codes() {
    play(Kind::ZooKeeper, codes::SCENES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_once_and_checkpoints() {
    play(Kind::Etcd, &[once::SCENES, checkpoints::SCENES].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zookeeper_once_and_checkpoints() {
    play(Kind::ZooKeeper, &[once::SCENES, checkpoints::SCENES].concat()).await;
}

/// What the job's processes see of signals and the terminal is the same on every store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_group() {
    play(Kind::ZooKeeper, group::SCENES).await;
}
