use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use coord_harness::{Proxy, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Cluster, Scribe};
use crate::client::{ClientConfig, ELECTIONS, Part};
use crate::history::{Line, What};

const PATIENCE: Duration = Duration::from_secs(60);
/// A client closes within the deadlines of its last calls.
const CLOSING: Duration = Duration::from_secs(20);

/// All client processes.
#[derive(Debug)]
pub struct Cast {
    /// Each one, by its number.
    pub actors: Vec<Actor>,
    program: PathBuf,
    scribe: Scribe,
    incarnations: u64,
}

/// One client process after the other, in one role.
#[derive(Debug)]
pub struct Actor {
    /// `c0`, or `b0` for the bare one.
    pub name: String,
    /// Its ways to the servers, one each.
    pub ways: Vec<Proxy>,
    config: ClientConfig,
    life: u64,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    process: Child,
    orders: Option<ChildStdin>,
    reader: JoinHandle<()>,
}

impl Cast {
    /// Nobody yet; `program` is this package's binary.
    pub fn new(program: PathBuf, scribe: Scribe) -> Cast {
        Cast {
            actors: vec![],
            program,
            scribe,
            incarnations: 0,
        }
    }

    /// One more client with ways of its own.
    pub async fn add(&mut self, name: &str, cluster: &Cluster, config: ClientConfig) {
        let mut ways = vec![];
        for node in cluster.nodes() {
            ways.push(Proxy::start(node.client_addr()).await);
        }
        self.actors.push(Actor {
            name: name.to_owned(),
            ways,
            config,
            life: 0,
            running: None,
        });
        self.begin(self.actors.len() - 1);
    }

    /// Starts its next life.
    pub fn begin(&mut self, number: usize) {
        self.incarnations += 1;
        let actor = &mut self.actors[number];
        let config = ClientConfig {
            who: actor.who(),
            incarnation: self.incarnations,
            servers: actor.ways.iter().map(|way| way.addr().to_string()).collect(),
            ..actor.config.clone()
        };
        let config = serde_json::to_string(&config).expect("plain data");
        let mut process = Command::new(&self.program)
            .args(["client", &config])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the client starts");
        let output = process.stdout.take().expect("it is piped");
        let (scribe, who) = (self.scribe.clone(), actor.who());
        let reader = tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            let mut broken = None;
            while let Ok(Some(text)) = output.next_line().await {
                // Only the last one, of a killed process, may be cut short: a history with holes proves nothing.
                if let Some(text) = broken.take() {
                    let what = format!("a line of {who} that cannot be read: {text}");
                    scribe.say("judge", What::Left { what });
                }
                match serde_json::from_str::<Line>(&text) {
                    Ok(line) => scribe.add(line),
                    Err(_) => broken = Some(text),
                }
            }
        });
        actor.running = Some(Running {
            orders: process.stdin.take(),
            process,
            reader,
        });
    }

    /// Waits until it has begun to work.
    pub async fn ready(&self, number: usize) {
        let who = self.actors[number].who();
        eventually(PATIENCE, &format!("{who} is ready"), async || {
            let ready = |line: &Line| (line.who == who && matches!(line.what, What::Ready { .. })).then_some(());
            self.scribe.latest(ready)
        })
        .await;
    }

    /// Waits until it works, and if elections are held and nobody leads yet, until it does.
    pub async fn leads(&self, number: usize) {
        self.ready(number).await;
        if !self.actors[number].config.parts.contains(&Part::Elections) {
            return;
        }
        eventually(PATIENCE, "both elections have a leader", async || {
            let led = ELECTIONS.iter().filter(|election| {
                let elected = |line: &Line| match &line.what {
                    What::Elected(leadership) => (leadership.election == **election).then_some(()),
                    _ => None,
                };
                self.scribe.latest(elected).is_some()
            });
            led.count() == ELECTIONS.len()
        })
        .await;
    }

    /// Kills it with -9.
    pub async fn kill(&mut self, number: usize) {
        let actor = &mut self.actors[number];
        if let Some(mut running) = actor.running.take() {
            if let Ok(Some(status)) = running.process.try_wait() {
                let what = format!("{} ended by itself: {status}", actor.who());
                self.scribe.say("nemesis", What::Left { what });
            }
            let _ = running.process.kill().await;
            let client = actor.who();
            self.scribe.say("nemesis", What::Killed { client });
            let _ = running.reader.await;
            actor.life += 1;
        }
    }

    /// Asks it to close, and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end, or not well.
    pub async fn close(&mut self, number: usize) -> Result<(), String> {
        let actor = &mut self.actors[number];
        let Some(mut running) = actor.running.take() else {
            return Ok(());
        };
        drop(running.orders.take());
        let who = actor.who();
        actor.life += 1;
        let ended = match timeout(CLOSING, running.process.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(status) => Err(format!("{who} ended with {status:?}")),
            Err(_) => {
                let _ = running.process.kill().await;
                Err(format!("{who} did not end within {CLOSING:?}"))
            }
        };
        let _ = running.reader.await;
        ended
    }

    /// Nobody writes any more.
    pub async fn quiet(&mut self) {
        for actor in &mut self.actors {
            if let Some(orders) = actor.running.as_mut().and_then(|running| running.orders.as_mut()) {
                let _ = orders.write_all(b"quiet\n").await;
            }
        }
    }
}

impl Actor {
    /// Its present life, or the next one.
    pub fn who(&self) -> String {
        format!("{}.{}", self.name, self.life)
    }

    /// Stops it in its tracks, or lets it go on.
    pub fn signal(&self, signal: Signal) {
        let id = self.running.as_ref().and_then(|running| running.process.id());
        if let Some(pid) = id.and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(pid, signal);
        }
    }
}
