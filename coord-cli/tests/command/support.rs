use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_harness::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// How long anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The command, with none of this process's own settings.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coord"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COORD_") {
            command.env_remove(name);
        }
    }
    // As the harness starts its ZooKeeper servers; and what heals by itself need not take its time here.
    command
        .env("COORD_ZOOKEEPER_TICK", "200ms")
        .env("COORD_SESSION_BACKOFF_MAX", "1s");
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// How a run ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The JSON objects, one per line.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let row =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?} of {self:?}"));
        self.stdout.lines().map(row).collect()
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Done {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// Runs it to its end.
pub(crate) async fn finish(mut command: Command) -> Done {
    let output = tokio::time::timeout(LONG, command.output()).await;
    let output = output.expect("it ends in time").expect("it starts");
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

pub(crate) async fn coord(store: &str, args: &[&str]) -> Done {
    finish(command(&[&["--store", store], args].concat())).await
}

/// One that goes on.
pub(crate) struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// What a pipe gave so far.
struct Lines {
    all: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// With `--json`.
    pub(crate) fn start(store: &str, args: &[&str]) -> Running {
        Running::spawn(command(&[&["--store", store, "--json"], args].concat()))
    }

    pub(crate) fn spawn(mut command: Command) -> Running {
        let mut child = spawn(&mut command);
        let stdout = Lines::follow(child.stdout.take().expect("it is piped"));
        let stderr = Lines::follow(child.stderr.take().expect("it is piped"));
        Running { child, stdout, stderr }
    }

    /// Nobody reads its standard error.
    pub(crate) fn unheard(store: &str, args: &[&str]) -> Running {
        let mut child = spawn(&mut command(&[&["--store", store, "--json"], args].concat()));
        drop(child.stderr.take());
        let stdout = Lines::follow(child.stdout.take().expect("it is piped"));
        let stderr = Lines::follow(tokio::io::empty());
        Running { child, stdout, stderr }
    }

    /// The rows so far. The last line of a process that was killed may be cut short.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let lines = self.stdout.all.lock().unwrap();
        lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.all.lock().unwrap().join("\n")
    }

    /// Waits for a row that is so, among those after the first `skip`.
    pub(crate) async fn row(&self, skip: usize, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let waited = eventually(LONG, what, async || {
            let rows = self.rows();
            let found = rows.iter().skip(skip).find(|row| is(row)).cloned();
            found.ok_or_else(|| format!("{rows:?}, and on standard error: {}", self.stderr()))
        });
        waited.await
    }

    /// Waits for an event of this name.
    pub(crate) async fn event(&self, skip: usize, event: &str) -> Value {
        self.row(skip, event, |row| row["event"] == event).await
    }

    /// Waits until it has written anything.
    pub(crate) async fn first_line(&self) {
        eventually(LONG, "a line", async || {
            let lines = self.stdout.all.lock().unwrap().len();
            if lines > 0 { Ok(()) } else { Err(self.stderr()) }
        })
        .await;
    }

    /// Waits for words on standard error.
    pub(crate) async fn says(&self, words: &str) {
        eventually(LONG, words, async || {
            let said = self.stderr();
            if said.contains(words) { Ok(()) } else { Err(said) }
        })
        .await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32));
        kill_process(pid.expect("it runs"), signal).expect("it is ours");
    }

    /// Waits for its end, and for all that it wrote.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = tokio::time::timeout(LONG, self.child.wait()).await;
        for lines in [&mut self.stdout, &mut self.stderr] {
            (&mut lines.reader).await.expect("it reads");
        }
        status.expect("it ends in time").expect("its end")
    }

    /// Asks it to end; it must do so well.
    pub(crate) async fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

impl Lines {
    fn follow(pipe: impl AsyncRead + Unpin + Send + 'static) -> Lines {
        let all: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = all.clone();
        let reader = tokio::spawn(async move {
            let mut pipe = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = pipe.next_line().await {
                lines.lock().unwrap().push(line);
            }
        });
        Lines { all, reader }
    }
}

/// CLOCK_BOOTTIME in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
