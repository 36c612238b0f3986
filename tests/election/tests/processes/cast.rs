use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_api::{Env, Recipe, Task};
use coord_election_tests::Store;
use coord_harness::{Proxy, eventually};
use coord_recipes_tests::{Line, What};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::theatre::Theatre;

/// The shortest lease that both stores grant as asked for.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// How long a leader leads if nothing happens.
const TERM: Duration = Duration::from_secs(60);
/// How long anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The candidates, and what they wrote.
pub(crate) struct Cast {
    pub(crate) actors: Vec<Actor>,
    lines: Arc<Mutex<Vec<Line>>>,
    store: Store,
    recipe: Recipe,
    env: Env,
}

/// One candidate.
pub(crate) struct Actor {
    pub(crate) way: Proxy,
    process: Child,
    reader: Task,
}

impl Cast {
    pub(crate) async fn new(theatre: &Theatre, store: Store, recipe: Recipe, count: usize) -> Cast {
        let mut cast = Cast {
            actors: vec![],
            lines: Arc::default(),
            store,
            recipe,
            env: Env::system(),
        };
        for who in 0..count {
            let way = theatre.way().await;
            let (process, reader) = cast.start(who, &way);
            cast.actors.push(Actor { way, process, reader });
        }
        cast
    }

    fn start(&self, who: usize, way: &Proxy) -> (Child, Task) {
        let recipe = match self.recipe {
            Recipe::Cas => "cas",
            Recipe::Sequence => "sequence",
        };
        let mut process = Command::new(env!("CARGO_BIN_EXE_candidate"))
            .args([
                self.store.name(),
                &way.addr().to_string(),
                recipe,
                "/election",
                &format!("c{who}"),
            ])
            .args([TTL.as_millis().to_string(), TERM.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the candidate starts");
        let output = process.stdout.take().expect("it is piped");
        let lines = self.lines.clone();
        let reader = self.env.spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(text)) = output.next_line().await {
                // The last one of a killed process may be cut short.
                if let Ok(line) = serde_json::from_str(&text) {
                    lines.lock().unwrap().push(line);
                }
            }
        });
        (process, reader)
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn now(&self) -> Duration {
        self.env.now().since_start()
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.env.sleep(duration).await;
    }

    /// Waits until somebody says that it is valid after `since`; its number, and when it was elected.
    pub(crate) async fn leader(&self, since: Duration) -> usize {
        eventually(LONG, "a leader", async || {
            let lines = self.lines();
            let valid = |line: &&Line| line.at > since && matches!(line.what, What::Valid { .. });
            lines.iter().rev().find(valid).and_then(|line| self.number(line))
        })
        .await
    }

    /// Waits for the first election after `since`; when that was.
    pub(crate) async fn elected(&self, since: Duration) -> Duration {
        eventually(LONG, "an election", async || {
            let lines = self.lines();
            let elected = |line: &&Line| line.at > since && matches!(line.what, What::Elected { .. });
            lines.iter().find(elected).map(|line| line.at)
        })
        .await
    }

    /// The granted ttl and the driver's slack.
    pub(crate) fn terms(&self) -> (Duration, Duration) {
        let started = self.lines().into_iter().find_map(|line| match line.what {
            What::Started { ttl, slack } => Some((ttl, slack)),
            _ => None,
        });
        started.expect("somebody has started")
    }

    fn number(&self, line: &Line) -> Option<usize> {
        let pid: u32 = line.who.split_once('/')?.1.parse().ok()?;
        self.actors.iter().position(|actor| actor.process.id() == Some(pid))
    }

    pub(crate) fn signal(&self, who: usize, signal: Signal) {
        let pid = self.actors[who].process.id().and_then(|pid| Pid::from_raw(pid as i32));
        kill_process(pid.expect("it runs"), signal).expect("it is ours");
    }

    /// Kills it with -9 and starts another in its place.
    pub(crate) async fn replace(&mut self, who: usize) {
        self.signal(who, Signal::KILL);
        self.actors[who].process.wait().await.expect("it has ended");
        let (process, reader) = self.start(who, &self.actors[who].way);
        let actor = &mut self.actors[who];
        actor.process = process;
        let reader = std::mem::replace(&mut actor.reader, reader);
        reader.join().await;
    }

    /// Asks all of them to close, and waits until they have ended.
    pub(crate) async fn close(mut self) -> Vec<Line> {
        for actor in &mut self.actors {
            drop(actor.process.stdin.take());
        }
        for actor in self.actors {
            let Actor {
                mut process, reader, ..
            } = actor;
            let ended = tokio::time::timeout(LONG, process.wait()).await;
            assert!(ended.expect("in time").expect("its end").success());
            reader.join().await;
        }
        let lines = self.lines.lock().unwrap();
        lines.clone()
    }
}
