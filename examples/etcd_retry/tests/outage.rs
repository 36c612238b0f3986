//! The example does what its README says.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use coord_harness::{EtcdCluster, EtcdOptions, eventually};
use rustix::process::{Pid, Signal, kill_process};

const SOON: Duration = Duration::from_secs(40);
const ENTRY: &str = "/services/nodes/localhost:50000";

/// The running example; killed if the test fails before its end.
struct Example {
    child: std::process::Child,
    output: std::path::PathBuf,
}

impl Example {
    fn start(etcd: &EtcdCluster) -> Example {
        let output = etcd.dir().join("example.out");
        let file = std::fs::File::create(&output).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_etcd_retry"))
            .args([etcd.node(0).client_addr().to_string().as_str(), "3"])
            .env_remove("RUST_LOG")
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Example { child, output }
    }

    async fn says(&self, what: &str, times: usize) {
        let said = || std::fs::read_to_string(&self.output).unwrap_or_default();
        eventually(SOON, what, async || {
            let said = said();
            let enough = said.matches(what).count() >= times;
            if enough { Ok(()) } else { Err(said) }
        })
        .await;
    }

    async fn interrupt(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        eventually(SOON, "the example ends", || {
            let ended = self.child.try_wait().unwrap();
            async move { ended }
        })
        .await
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn registered(etcd: &EtcdCluster) -> bool {
    etcd.etcdctl(&["get", "--keys-only", ENTRY]).await.contains(ENTRY)
}

#[tokio::test]
async fn kill_etcd_watch_it_retry_start_etcd_watch_it_heal() {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    let example = Example::start(&etcd);
    example.says("INFO", 1).await;
    example.says("registered", 1).await;
    assert!(registered(&etcd).await);

    etcd.node(0).kill();
    example.says("failed to renew the lease", 1).await;
    example.says("lease lost: unreachable", 1).await;
    example.says("failed to grant a lease", 2).await;
    etcd.node(0).restart();
    etcd.wait_ready(SOON).await;
    example.says("epoch=2", 1).await;
    example.says("registered", 2).await;
    assert!(registered(&etcd).await);

    assert!(example.interrupt().await.success());
    assert!(!registered(&etcd).await, "at once, not by the ttl");
}
