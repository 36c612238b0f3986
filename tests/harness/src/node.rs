//! One server process.

use crate::{ports::ReservedPort, sandbox::Sandbox};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Waits for a word from us before it becomes the server, so that the guardian knows the process before it can do
/// anything; if we die first, the word never comes and it ends. `exec` keeps the process id.
const LAUNCHER: &str = r#"read -r go || exit 1; exec "$@" </dev/null"#;

const GRACE: Duration = Duration::from_secs(10);

/// How to start a server, again and again.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Mutex<Vec<OsString>>,
    pub(crate) env: Vec<(String, String)>,
    /// Variables with this prefix are not inherited: they would configure the server behind the test's back.
    pub(crate) env_strip: &'static str,
    pub(crate) log: PathBuf,
}

/// One server of a cluster. It can be killed, paused and restarted while other tasks use it; its ports and its data
/// stay the same.
#[derive(Debug)]
pub struct Node {
    launch: Launch,
    client_addr: SocketAddr,
    /// Held while the node is down, too: see [`ReservedPort`].
    _ports: Vec<ReservedPort>,
    running: Mutex<Option<Running>>,
    /// Last, so that the folder goes after the process.
    sandbox: Arc<Sandbox>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    paused: bool,
}

impl Node {
    pub(crate) fn start(
        sandbox: Arc<Sandbox>,
        launch: Launch,
        client_addr: SocketAddr,
        ports: Vec<ReservedPort>,
    ) -> Self {
        let node = Self {
            launch,
            client_addr,
            _ports: ports,
            running: Mutex::new(None),
            sandbox,
        };
        node.restart();
        node
    }

    /// Where clients connect; with TLS, the secure port.
    pub fn client_addr(&self) -> SocketAddr {
        self.client_addr
    }

    /// The process id, unless the node is down.
    pub fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(|running| running.child.id())
    }

    /// Whether the process runs and is not paused.
    pub fn is_active(&self) -> bool {
        let mut running = self.lock();
        self.reap(&mut running);
        running.as_ref().is_some_and(|running| !running.paused)
    }

    /// Ends the process with SIGTERM, after ten seconds with SIGKILL. No effect if it is down.
    pub async fn stop(&self) {
        self.resume();
        self.signal(Signal::TERM);
        let end = Instant::now() + GRACE;
        while self.is_active() && Instant::now() < end {
            sleep(Duration::from_millis(10)).await;
        }
        self.kill();
    }

    /// Ends the process with SIGKILL, paused or not. No effect if it is down.
    pub fn kill(&self) {
        let mut running = self.lock();
        if let Some(Running { child, .. }) = running.as_mut() {
            let group = group(child);
            // An error means that it has ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            self.sandbox.release(group);
        }
        *running = None;
    }

    /// Stops the process in its tracks with SIGSTOP: connections stay open and nothing answers. Returns when all of its
    /// threads stand still.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a paused process go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts the process again with the same data and ports; kills it first if it still runs. Does not wait until it
    /// serves: see the cluster's `wait_ready`.
    pub fn restart(&self) {
        self.kill();
        let mut child = self.command().spawn().expect("sh starts");
        self.sandbox.adopt(group(&child));
        let mut go = child.stdin.take().expect("stdin is piped");
        go.write_all(b"go\n").expect("the launcher reads");
        *self.lock() = Some(Running { child, paused: false });
    }

    /// From the next start on, also with these arguments. Programs take the last one where two contradict.
    pub(crate) fn add_args(&self, more: &[&str]) {
        let mut args = self.launch.args.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        args.extend(more.iter().map(OsString::from));
    }

    /// The end of what the server wrote to stdout and stderr since its first start, at most 4 KiB.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read(&self.launch.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(4096)..];
        String::from_utf8_lossy(tail).into_owned()
    }

    /// If the process ended by itself: how, and the end of its log.
    pub(crate) fn obituary(&self) -> Option<String> {
        let mut running = self.lock();
        let status = self.reap(&mut running)?;
        drop(running);
        Some(format!(
            "{} ended with {status}:\n{}",
            self.launch.program.display(),
            self.log_tail()
        ))
    }

    fn command(&self) -> Command {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.launch.log)
            .expect("the log opens");
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(self.launch.env_strip) {
                command.env_remove(name);
            }
        }
        command
            .args(["-c", LAUNCHER, "launcher"])
            .arg(&self.launch.program)
            .args(&*self.launch.args.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
            .envs(self.launch.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.sandbox.dir())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the log's handle is copied"))
            .stderr(log)
            .process_group(0);
        command
    }

    fn signal(&self, signal: Signal) {
        let mut running = self.lock();
        if let Some(Running { child, paused }) = running.as_mut() {
            let _ = kill_process_group(group(child), signal);
            match signal {
                Signal::STOP => {
                    *paused = true;
                    // The signal is only delivered, not obeyed, when `kill` returns: a thread could still answer. Should
                    // the process end instead, NOWAIT leaves its status for `Child` to collect.
                    let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                    let _ = waitid(WaitId::Pid(group(child)), events);
                }
                Signal::CONT => *paused = false,
                _ => {}
            }
        }
    }

    fn reap(&self, running: &mut Option<Running>) -> Option<std::process::ExitStatus> {
        let child = &mut running.as_mut()?.child;
        let status = child.try_wait().ok().flatten()?;
        self.sandbox.release(group(child));
        *running = None;
        Some(status)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        // A panicking test must still be able to clean up.
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The child leads a process group of its own, whose number is its process id.
fn group(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Whether a process with this id exists and is more than a zombie.
pub fn process_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The command's name before it is in brackets and may itself hold brackets and spaces.
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}
