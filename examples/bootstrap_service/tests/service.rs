//! The example does what its README says.

use std::process::{Command, Stdio};
use std::time::Duration;

use coord_harness::{EtcdCluster, EtcdOptions, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const LONG: Duration = Duration::from_secs(60);

/// A running copy; killed if the test fails before its end.
struct Copy {
    child: std::process::Child,
    output: std::path::PathBuf,
}

impl Copy {
    fn start(etcd: &EtcdCluster, name: &str) -> Copy {
        let output = etcd.dir().join(name);
        let file = std::fs::File::create(&output).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_bootstrap_service"))
            .arg(format!("etcd://{}", etcd.node(0).client_addr()))
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Copy { child, output }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    async fn greets(&self, what: &str) -> String {
        eventually(LONG, what, async || {
            let said = self.said();
            let at = said
                .lines()
                .find_map(|line| line.strip_prefix("serving on "))
                .ok_or(said.clone())?;
            let mut greeting = String::new();
            let mut stream = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
            stream
                .read_to_string(&mut greeting)
                .await
                .map_err(|error| error.to_string())?;
            if greeting.contains(what) {
                Ok(greeting)
            } else {
                Err(greeting)
            }
        })
        .await
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn two_copies_find_each_other_and_one_leaves() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let (one, mut other) = (Copy::start(&etcd, "one"), Copy::start(&etcd, "other"));
    let greetings = [one.greets("one of 2").await, other.greets("one of 2").await];
    let leaders = greetings.iter().filter(|greeting| greeting.contains("only one may do"));
    assert_eq!(leaders.count(), 1, "{greetings:?}");
    kill_process(Pid::from_child(&other.child), Signal::INT).unwrap();
    let status = eventually(LONG, "it ends", || {
        let ended = other.child.try_wait().unwrap();
        async move { ended }
    })
    .await;
    assert!(
        status.success() && other.said().contains("left gracefully"),
        "{}",
        other.said()
    );
    one.greets("one of 1, and I do what only one may do").await;
}
