//! Nothing is left behind, however the owner ends.

use coord_harness::{EtcdCluster, EtcdOptions, ZkEnsemble, ZkOptions, eventually, process_alive};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn dropping_leaves_neither_processes_nor_folders() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let zk = ZkEnsemble::start(ZkOptions::default()).await;
    etcd.node(0).restart();
    zk.node(0).pause();
    let pids = [etcd.node(0).pid().expect("up"), zk.node(0).pid().expect("up")];
    let dirs = [etcd.dir().to_owned(), zk.dir().to_owned()];
    assert!(pids.iter().all(|pid| process_alive(*pid)) && dirs.iter().all(|dir| dir.is_dir()));
    drop((etcd, zk));
    assert!(
        !pids.iter().any(|pid| process_alive(*pid)),
        "a server outlived its cluster"
    );
    assert!(!dirs.iter().any(|dir| dir.exists()), "a folder outlived its cluster");
}

#[tokio::test]
async fn a_panicking_test_cleans_up() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let test = tokio::spawn(async move {
        let etcd = EtcdCluster::start(EtcdOptions::default()).await;
        sender
            .send((etcd.node(0).pid().expect("up"), etcd.dir().to_owned()))
            .expect("someone listens");
        panic!("on purpose");
    });
    assert!(test.await.expect_err("it panics").is_panic());
    let (pid, dir) = receiver.await.expect("it started");
    assert!(!process_alive(pid) && !dir.exists());
}

#[tokio::test]
async fn servers_die_with_an_owner_that_is_killed() {
    for (kind, nodes) in [("etcd", "3"), ("zk", "1")] {
        let mut owner = Command::new(env!("CARGO_BIN_EXE_serve"))
            .args([kind, nodes])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the owner starts");
        let mut lines = BufReader::new(owner.stdout.take().expect("piped")).lines();
        let mut line = |name: &str| {
            let line = lines.next().expect("three lines").expect("text");
            line.strip_prefix(name).expect("the line's name").trim().to_owned()
        };
        line("endpoints");
        let pids: Vec<u32> = line("pids")
            .split(' ')
            .map(|pid| pid.parse().expect("a number"))
            .collect();
        let dir = PathBuf::from(line("dir"));
        assert!(pids.iter().all(|pid| process_alive(*pid)) && Path::is_dir(&dir));
        owner.kill().expect("the owner lives");
        owner.wait().expect("the owner ends");
        eventually(SOON, "the servers die", async || {
            !pids.iter().any(|pid| process_alive(*pid))
        })
        .await;
        eventually(SOON, "the folder goes", async || !dir.exists()).await;
    }
}
