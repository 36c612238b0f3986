use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Election, ElectionConfig, Env, Key, Recipe, Session, SessionConfig, Task};
use coord_election_tests::Store;
use coord_mem::MemStore;
use coord_recipes_tests::{Line, What};
use futures::future::join_all;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

const TTL: Duration = Duration::from_secs(2);
const PAIRS: usize = 4;
const CRASHES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// From the crash of a leader until the next one leads.
pub(crate) struct TakeOvers {
    ttl: Duration,
    slack: Duration,
    took: Vec<Duration>,
}

pub(crate) fn print(name: &str, all: TakeOvers) {
    let TakeOvers { ttl, slack, mut took } = all;
    took.sort_unstable();
    let (first, half, last) = (took[0], took[took.len() / 2], took[took.len() - 1]);
    println!("\n| {name}: take-over after a crash | shortest | p50 | longest | granted ttl | + slack |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    println!(
        "| {} crashes | {first:.2?} | {half:.2?} | {last:.2?} | {ttl:.2?} | {:.2?} |",
        took.len(),
        ttl + slack
    );
}

/// A candidate as a process.
struct Process {
    child: Child,
    lines: mpsc::UnboundedReceiver<Line>,
    _reader: Task,
}

impl Process {
    fn start(env: &Env, store: Store, address: SocketAddr, recipe: &str, key: &str) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_candidate"))
            .args([store.name(), &address.to_string(), recipe, key, "c"])
            .args([TTL.as_millis().to_string(), PATIENCE.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the candidate starts");
        let output = child.stdout.take().expect("it is piped");
        let (told, lines) = mpsc::unbounded_channel();
        let reader = env.spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(text)) = output.next_line().await {
                // The last one of a killed process may be cut short; in the end nobody reads any more.
                if let Ok(line) = serde_json::from_str(&text) {
                    let _ = told.send(line);
                }
            }
        });
        Process {
            child,
            lines,
            _reader: reader,
        }
    }

    async fn until<T>(&mut self, find: impl Fn(&Line) -> Option<T>) -> T {
        let found = async {
            loop {
                let line = self.lines.recv().await.expect("it goes on");
                if let Some(found) = find(&line) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("in time")
    }

    async fn started(&mut self) -> (Duration, Duration) {
        self.until(|line| match line.what {
            What::Started { ttl, slack } => Some((ttl, slack)),
            _ => None,
        })
        .await
    }

    async fn elected(&mut self) -> Duration {
        self.until(|line| matches!(line.what, What::Elected { .. }).then_some(line.at))
            .await
    }
}

/// Leaders that are processes, killed with -9 at any moment of their renewals.
pub(crate) async fn of_processes(store: Store, address: SocketAddr) -> TakeOvers {
    let env = Env::system();
    let pairs = (0..2 * PAIRS).map(|pair| {
        let env = env.clone();
        async move {
            let recipe = if pair % 2 == 0 { "sequence" } else { "cas" };
            let key = format!("/crash-{pair}");
            let start = || Process::start(&env, store, address, recipe, &key);
            let mut leader = start();
            let (ttl, slack) = leader.started().await;
            leader.elected().await;
            let mut took = vec![];
            for _ in 0..CRASHES {
                let mut standby = start();
                standby.started().await;
                env.sleep(TTL / 2 + env.random_duration(TTL)).await;
                let crash = env.now().since_start();
                leader.child.kill().await.expect("it is ours");
                took.push(standby.elected().await - crash);
                leader = standby;
            }
            leader.child.kill().await.expect("it is ours");
            TakeOvers { ttl, slack, took }
        }
    });
    together(join_all(pairs).await)
}

/// Leaders that stand still for ever.
pub(crate) async fn in_memory() -> TakeOvers {
    let store = MemStore::new(&Env::system());
    let pairs = (0..PAIRS * CRASHES).map(|pair| {
        let (leads, follows) = (store.client(), store.client());
        async move {
            let recipe = if pair % 2 == 0 { Recipe::Sequence } else { Recipe::Cas };
            let candidate = |client: Arc<dyn Coordinator>| {
                let config = SessionConfig {
                    ttl: TTL,
                    ..SessionConfig::default()
                };
                let session = Session::open(client, config).expect("a session");
                let key = Key::new(format!("/crash-{pair}")).expect("a key");
                let config = ElectionConfig {
                    recipe,
                    ..ElectionConfig::new(key, "c")
                };
                Election::new(&session, config)
            };
            let (first, second) = (candidate(leads.clone()), candidate(follows.clone()));
            let leadership = first.campaign().await.expect("a leadership");
            let env = follows.env();
            let elected = async {
                let next = second.campaign().await.expect("a leadership");
                (env.now(), next)
            };
            let crash = async {
                env.sleep(TTL / 2 + env.random_duration(TTL)).await;
                leads.faults().pause();
                env.now()
            };
            let ((elected, _next), crash) = tokio::join!(elected, crash);
            leads.faults().resume();
            drop(leadership);
            TakeOvers {
                ttl: TTL,
                slack: follows.capabilities().expiry_slack,
                took: vec![elected - crash],
            }
        }
    });
    together(join_all(pairs).await)
}

fn together(all: Vec<TakeOvers>) -> TakeOvers {
    let (ttl, slack) = (all[0].ttl, all[0].slack);
    let took = all.into_iter().flat_map(|one| one.took).collect();
    TakeOvers { ttl, slack, took }
}
