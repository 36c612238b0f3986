//! A store, and copies of a job that are processes.

use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use coord_harness::{EtcdCluster, EtcdOptions, Proxy, ZkEnsemble, ZkOptions, eventually};
use coordkit::{Config, Coordinator, CoordinatorExt, Key, connect};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::beats::{Beat, parse};

/// How long anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The servers' tick: sessions of one to ten seconds.
const TICK: Duration = Duration::from_millis(500);
/// For scenes that wait for the end of a lease: a short one, of which stopping takes little.
pub(crate) const SHORT: [&str; 4] = ["--ttl", "3s", "--grace", "300ms"];

/// A job that writes down that it lives until it gets SIGTERM: `sh -c "$BEAT" beat TAG`.
const BEAT: &str = r#"while :; do read up rest < /proc/uptime
echo "$COORD_NAME $COORD_TOKEN $1 $$ $up" >> "$LOG"; sleep 0.05; done"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Etcd,
    ZooKeeper,
}

pub(crate) enum Server {
    Etcd(EtcdCluster),
    ZooKeeper(ZkEnsemble),
}

/// One store, and a folder for what jobs write.
pub(crate) struct Stage {
    pub(crate) server: Server,
    folder: tempfile::TempDir,
    jobs: AtomicU32,
}

pub(crate) type Scene = (&'static str, fn(Arc<Stage>) -> Pin<Box<dyn Future<Output = ()> + Send>>);

/// A list of scenes by the names of their functions.
#[macro_export]
macro_rules! scenes {
    ($($name:ident),* $(,)?) => {
        pub(crate) const SCENES: &[$crate::stage::Scene] =
            &[$((stringify!($name), |stage| Box::pin($name(stage)))),*];
    };
}

/// Plays scenes side by side on one server; panics with the names of those that failed.
pub(crate) async fn play(kind: Kind, scenes: &[Scene]) {
    let only = std::env::var("COORD_SCENE").ok();
    let stage = Arc::new(Stage::open(kind).await);
    let played: Vec<_> = scenes
        .iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
        .map(|(name, scene)| (name, tokio::spawn(tokio::time::timeout(LONG * 3, scene(stage.clone())))))
        .collect();
    let mut failed = vec![];
    for (name, task) in played {
        if !matches!(task.await, Ok(Ok(()))) {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "on {kind:?}: {failed:?}");
}

// === impl Stage ===

impl Stage {
    async fn open(kind: Kind) -> Stage {
        Stage {
            server: match kind {
                Kind::Etcd => Server::Etcd(EtcdCluster::start(EtcdOptions::default()).await),
                Kind::ZooKeeper => {
                    let options = ZkOptions {
                        tick: TICK,
                        ..ZkOptions::default()
                    };
                    Server::ZooKeeper(ZkEnsemble::start(options).await)
                }
            },
            folder: tempfile::tempdir().unwrap(),
            jobs: AtomicU32::new(0),
        }
    }

    fn address(&self) -> std::net::SocketAddr {
        match &self.server {
            Server::Etcd(etcd) => etcd.node(0).client_addr(),
            Server::ZooKeeper(zookeeper) => zookeeper.node(0).client_addr(),
        }
    }

    fn url_of(&self, address: std::net::SocketAddr) -> String {
        match &self.server {
            Server::Etcd(_) => format!("etcd://{address}/app"),
            Server::ZooKeeper(_) => format!("zk://{address}/app"),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(self.address())
    }

    pub(crate) fn url_at(&self, way: &Proxy) -> String {
        self.url_of(way.addr())
    }

    /// A way to the server that can be cut off.
    pub(crate) async fn way(&self) -> Proxy {
        Proxy::start(self.address()).await
    }

    /// A job of its own for each scene.
    pub(crate) fn job(self: &Arc<Stage>, name: &str) -> Job {
        let number = self.jobs.fetch_add(1, Ordering::Relaxed);
        Job {
            name: format!("{name}-{number}"),
            log: self.folder.path().join(format!("{name}-{number}.log")),
            stage: self.clone(),
        }
    }

    /// The command with nothing in its environment but what it needs.
    pub(crate) fn coord(&self, args: &[&str]) -> Command {
        let mut command = self.prepared(Command::new(env!("CARGO_BIN_EXE_coord")));
        command.args(args);
        command
    }

    /// A line for the shell, with the same environment.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.prepared(Command::new("sh"));
        command.args(["-c", line]);
        command
    }

    fn prepared(&self, mut command: Command) -> Command {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("COORD_")) {
            command.env_remove(name);
        }
        command
            .env("COORD_STORE", self.url_of(self.address()))
            .env("COORD_ZOOKEEPER_TICK", format!("{}ms", TICK.as_millis()))
            .env("COORD_SESSION_BACKOFF_FIRST", "200ms")
            .env("COORD_SESSION_BACKOFF_MAX", "1s")
            .env("BEAT", BEAT)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs it to its end.
    pub(crate) async fn output(&self, args: &[&str]) -> Output {
        finish(self.coord(args)).await
    }

    /// A client of the test's own.
    pub(crate) fn client(&self) -> Arc<dyn Coordinator> {
        let mut config = Config::new(&self.url_of(self.address())).unwrap();
        config.zookeeper.tick = TICK;
        connect(config).unwrap()
    }

    /// A token that the store has just issued.
    pub(crate) async fn token(&self) -> u64 {
        let client = self.client();
        let key = Key::new(format!("/tokens/t{}", client.env().nonce())).unwrap();
        let token = client.create_persistent(&key, "").await.unwrap().created;
        client.close().await.unwrap();
        token
    }
}

/// To its end, with what it wrote.
pub(crate) async fn finish(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::time::timeout(LONG, command.output()).await;
    output.expect("it ends").expect("it starts")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

pub(crate) fn words(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A job, and what it writes down.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) log: PathBuf,
    pub(crate) stage: Arc<Stage>,
}

/// One copy that runs, or waits.
pub(crate) struct Copy {
    pub(crate) name: String,
    pub(crate) process: Child,
}

// === impl Job ===

impl Job {
    /// `coord run` of this job, ready to be started.
    pub(crate) fn command(&self, name: &str, options: &[&str], command: &[&str]) -> Command {
        let args = [&["run", &self.name, "--name", name], options, &["--"], command].concat();
        let mut run = self.stage.coord(&args);
        run.env("LOG", &self.log);
        run
    }

    /// A copy whose job is this shell script.
    pub(crate) fn copy(&self, name: &str, options: &[&str], script: &str) -> Copy {
        self.copy_via(None, name, options, script)
    }

    /// The same, with a way to the store of its own.
    pub(crate) fn copy_via(&self, way: Option<&Proxy>, name: &str, options: &[&str], script: &str) -> Copy {
        let mut command = self.command(name, options, &["sh", "-c", script]);
        if let Some(way) = way {
            command.env("COORD_STORE", self.stage.url_at(way));
        }
        Copy {
            name: name.to_owned(),
            process: command.spawn().expect("it starts"),
        }
    }

    /// Everything that its processes have written.
    pub(crate) fn beats(&self) -> Vec<Beat> {
        parse(&std::fs::read_to_string(&self.log).unwrap_or_default())
    }

    /// Lines that are no beats, of this kind.
    pub(crate) fn lines(&self, beginning: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix(beginning));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    /// Waits until a job with a token above this one lives; its first beat.
    pub(crate) async fn runs(&self, above: u64) -> Beat {
        eventually(LONG, "a job that runs", || {
            let beat = self.beats().into_iter().find(|beat| beat.token > above);
            async move { beat }
        })
        .await
    }

    /// Waits until this many candidates are in line.
    pub(crate) async fn in_line(&self, count: usize) {
        let client = self.stage.client();
        let candidates = Key::new(format!("/jobs/{}/candidates", self.name)).unwrap();
        eventually(LONG, "candidates in line", || {
            let (client, candidates) = (client.clone(), candidates.clone());
            async move {
                client
                    .children(&candidates)
                    .await
                    .is_ok_and(|found| found.len() == count)
            }
        })
        .await;
        client.close().await.unwrap();
    }
}

// === impl Copy ===

impl Copy {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is ours");
    }

    pub(crate) fn pid(&self) -> Pid {
        let pid = self
            .process
            .id()
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        pid.expect("it runs")
    }

    /// Waits for its end; its exit code.
    pub(crate) async fn code(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(LONG, self.process.wait()).await;
        status.expect("it ends").expect("it is ours").code()
    }
}

/// The copy that wrote this.
pub(crate) fn whose<'a>(copies: &'a mut [Copy], beat: &Beat) -> &'a mut Copy {
    copies
        .iter_mut()
        .find(|copy| copy.name == beat.name)
        .expect("one of ours")
}
