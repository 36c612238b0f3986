//! A client: a process of its own that works on the store, writes down what happens to it, and ends when it is told.

mod bare;
mod bare_watches;
mod config;
mod elections;
mod mutant;
mod ours;
mod recorder;
mod registers;
mod registrations;
mod sequences;
mod watches;

pub(crate) use config::TICK;
pub use config::{ClientConfig, Part, Store};
pub use mutant::Mutant;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Backoff, Env, Session, SessionConfig, Strategy, Task};
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

use crate::history::What;
use bare::Bare;
use mutant::Wrong;
use ours::Ours;
use recorder::Recorder;
use registers::Registers;

/// The deadline of each call.
pub const CALL_DEADLINE: Duration = Duration::from_secs(1);
/// The keys below it are watched, and written with conditional updates only.
pub const CHAINED: &str = "/chained";
/// The keys below it are written without conditions as well; others every few seconds.
pub const BLIND: &str = "/blind";
/// One register for each election, written by its leaders.
pub const FENCED: &str = "/fenced";
/// The two elections.
pub const ELECTIONS: [&str; 2] = ["/elections/cas", "/elections/sequence"];
/// Where sequential entries are made.
pub const QUEUE: &str = "/queue";
/// The service that all clients register.
pub const SERVICE: &str = "faults";
/// How many keys are chained.
pub const KEYS: u64 = 4;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Work,
    Quiet,
}

/// Runs until the standard input ends.
///
/// # Errors
/// What stopped it from working at all.
pub async fn run(config: ClientConfig) -> Result<(), Box<dyn Error>> {
    // Also when it stands still while the run is ended by hand.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let recorder = Recorder::new(&config.who);
    tell_of_panics(&recorder);
    let (phase, phases) = watch::channel(Phase::Work);
    let env = Env::system();
    let memory = env.spawn(recorder.clone().memory(env.clone()));
    if config.bare {
        let bare = Arc::new(Bare::open(&config).await?);
        recorder.say(What::Ready { ttl: 0, slack: 0 });
        let mut workers = work(&config, &env, &recorder, bare.clone(), &phases);
        let mut watching = vec![];
        if config.has(Part::Watches) {
            let follow = |key| bare_watches::follow(bare.clone(), recorder.clone(), key);
            watching = bare_watches::keys().map(|key| env.spawn(follow(key))).collect();
        }
        if config.has(Part::Sequences) {
            workers.push(env.spawn(sequences::run_bare(bare.clone(), recorder.clone(), phases.clone())));
        }
        commands(&phase).await;
        join(workers).await;
        if config.has(Part::Watches) {
            bare_watches::finals(&bare, &recorder).await;
        }
        watching.iter().for_each(Task::abort);
    } else {
        ours(&config, &env, &recorder, &phase, &phases).await?;
    }
    memory.abort();
    recorder.say(What::Closed);
    Ok(())
}

/// Whatever task it was in: nobody may be looking at how that ended.
fn tell_of_panics(recorder: &Recorder) {
    let (recorder, usual) = (recorder.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let what = format!("a panic of {}: {panic}", recorder.who());
        recorder.say(What::Left { what });
        usual(panic);
    }));
}

async fn ours(
    config: &ClientConfig,
    env: &Env,
    recorder: &Recorder,
    phase: &watch::Sender<Phase>,
    phases: &watch::Receiver<Phase>,
) -> Result<(), Box<dyn Error>> {
    let mut coordinator = config.store.open(&config.servers, config.call_deadline, env.clone())?;
    if let Some(mutant) = config.mutant {
        coordinator = Arc::new(Wrong::new(coordinator, mutant));
    }
    let session = Session::open(
        coordinator.clone(),
        SessionConfig {
            name: config.who.clone(),
            ttl: config.ttl,
            backoff: Backoff {
                strategy: Strategy::Constant {
                    delay: Duration::from_millis(200),
                },
                ..Backoff::default()
            },
        },
    )?;
    let lease = session.connected().await?;
    recorder.say(What::Ready {
        ttl: nanos(lease.ttl),
        slack: nanos(coordinator.capabilities().expiry_slack),
    });
    let mut workers = vec![];
    let mut watching = vec![];
    if config.has(Part::Watches) {
        watching = watches::start(&coordinator, recorder)?;
    }
    if config.has(Part::Registers) {
        let ours = Arc::new(Ours::new(coordinator.clone()));
        workers = work(config, env, recorder, ours, phases);
    }
    if config.has(Part::Sequences) {
        workers.push(env.spawn(sequences::run(session.clone(), recorder.clone(), phases.clone())));
    }
    let registry = match config.has(Part::Registry) {
        true => Some(registrations::start(config, &session, recorder)?),
        false => None,
    };
    let elections = match config.has(Part::Elections) {
        true => elections::start(config, &session, recorder)?,
        false => vec![],
    };
    commands(phase).await;
    join(workers).await;
    for election in elections {
        election.close().await;
    }
    if let Some(registry) = registry {
        registry.close().await;
    }
    let closed = [session.close().await, coordinator.close().await];
    for error in closed.into_iter().filter_map(Result::err) {
        recorder.note(format!("closing: {error}"));
    }
    join(watching).await;
    Ok(())
}

/// Workers on the registers, one after the other each.
fn work(
    config: &ClientConfig,
    env: &Env,
    recorder: &Recorder,
    store: Arc<dyn registers::Performer>,
    phases: &watch::Receiver<Phase>,
) -> Vec<Task> {
    (0..config.workers)
        .map(|worker| {
            let registers = Registers::new(config, worker, recorder.clone(), store.clone());
            env.spawn(registers.run(env.clone(), phases.clone()))
        })
        .collect()
}

/// Does as the standard input says; returns at its end.
async fn commands(phase: &watch::Sender<Phase>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line == "quiet" {
            phase.send_replace(Phase::Quiet);
        }
    }
    phase.send_replace(Phase::Quiet);
}

async fn join(tasks: Vec<Task>) {
    for task in tasks {
        task.join().await;
    }
}

fn is_quiet(phases: &watch::Receiver<Phase>) -> bool {
    *phases.borrow() >= Phase::Quiet
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
