//! A run that is ended by hand leaves nothing behind, not even a client that it had just stopped in its tracks.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use coord_harness::{eventually, process_alive};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);
/// Four of ours, and a bare one.
const CLIENTS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_ctrl_c_as_well_as_by_kill() {
    for signal in [Signal::INT, Signal::KILL] {
        let out = std::env::temp_dir().join(format!("coord-faults-interrupted-{}", std::process::id()));
        let mut run = Command::new(env!("CARGO_BIN_EXE_faults"))
            .args(["run", "--store", "etcd", "--schedules", "1", "--seconds", "20", "--out"])
            .arg(&out)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let parent = run.id().unwrap();
        let all = eventually(PATIENCE, "all clients run", async || {
            let all = descendants(parent);
            (all.iter().filter(|(_, is_client)| *is_client).count() == CLIENTS).then_some(all)
        })
        .await;
        let (stopped, _) = all.iter().find(|(_, is_client)| *is_client).unwrap();
        send(*stopped, Signal::STOP);
        // To the one process alone: what it can no longer do itself has to happen all the same.
        send(parent, signal);
        run.wait().await.unwrap();
        eventually(PATIENCE, "everything it started has ended", async || {
            all.iter().all(|(pid, _)| !process_alive(*pid)).then_some(())
        })
        .await;
        assert!(!out.exists(), "an interrupted run keeps nothing");
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// All processes below this one, and whether each is a client.
fn descendants(of: u32) -> BTreeSet<(u32, bool)> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        if parent(pid) == Some(of) {
            let args = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_client = args.split(|byte| *byte == 0).nth(1) == Some(b"client");
            found.insert((pid, is_client));
            found.extend(descendants(pid));
        }
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}
