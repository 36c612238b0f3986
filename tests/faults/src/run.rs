//! One run: servers, clients, faults, and what came of it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::check::{self, Verdict};
use crate::client::{CALL_DEADLINE, ClientConfig, Mutant, Part, Store};
use crate::history::{Line, What};
use crate::nemesis::{Nemesis, Step, schedule};
use crate::report::calls_a_second;
use crate::stage::{Cast, Cluster, Judge, Scribe, Witness, leftovers};

/// What to run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// On which store.
    pub store: Store,
    /// For the schedule and the clients' choices.
    pub seed: u64,
    /// How long faults happen.
    pub length: Duration,
    /// The binary of this package, which is also the client.
    pub program: PathBuf,
    /// How many servers; three.
    pub nodes: usize,
    /// How many clients; four, and a bare one.
    pub clients: usize,
    /// The deadline of their calls.
    pub call_deadline: Duration,
    /// The time to live of their sessions.
    pub ttl: Duration,
    /// How long a leader leads at most.
    pub longest_term: Duration,
    /// What they do.
    pub parts: Vec<Part>,
    /// Faults other than those of the seed.
    pub plan: Option<Vec<Step>>,
    /// Whether it waits until all works again, and looks for what is left; if not, the checkers of that have less to look
    /// at.
    pub to_the_end: bool,
    /// What is wrong with all clients.
    pub mutant: Option<Mutant>,
}

impl RunOptions {
    /// The run of this seed.
    pub fn new(store: Store, seed: u64, length: Duration, program: PathBuf) -> RunOptions {
        RunOptions {
            store,
            seed,
            length,
            program,
            nodes: 3,
            clients: 4,
            call_deadline: CALL_DEADLINE,
            ttl: Duration::from_secs(3),
            longest_term: Duration::from_secs(8),
            parts: vec![
                Part::Registers,
                Part::Watches,
                Part::Elections,
                Part::Registry,
                Part::Sequences,
            ],
            plan: None,
            to_the_end: true,
            mutant: None,
        }
    }

    /// What plays the same schedule again.
    pub fn replay(&self) -> String {
        format!(
            "make faults FLAGS=\"--store {} --schedules 1 --seconds {} --seed {}\"",
            self.store.name(),
            self.length.as_secs(),
            self.seed
        )
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The history.
    pub lines: Vec<Line>,
    /// What the checkers say.
    pub verdicts: Vec<Verdict>,
}

/// How many calls a second there are at least before the first fault.
const LOAD: f64 = 100.0;
/// How long the clients may take until all works again; the checker is stricter.
const RECOVERY: Duration = Duration::from_secs(40);
/// How long a late request may still be on its way.
const SETTLING: Duration = Duration::from_secs(2);
/// How long watches may take to tell the last.
const TELLING: Duration = Duration::from_secs(8);

/// Runs it.
///
/// # Errors
/// When servers or clients cannot be started, or the store cannot be read in the end.
pub async fn run(options: &RunOptions) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>> {
    run_with(options, Scribe::default()).await
}

/// Runs it, and leaves its history with the scribe, whatever happens.
///
/// # Errors
/// As [`run`].
pub async fn run_with(options: &RunOptions, scribe: Scribe) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>> {
    let cluster = Cluster::start(options.store, options.nodes).await;
    let judge = Judge::new(&cluster, &scribe)?;
    let witness = Witness::start(&cluster, &scribe, options.ttl).await?;
    let mut cast = Cast::new(options.program.clone(), scribe.clone());
    for number in 0..options.clients {
        cast.add(&format!("c{number}"), &cluster, config(options)).await;
        if options.plan.is_some() {
            // Then the first one leads first.
            cast.leads(number).await;
        }
    }
    if options.parts.contains(&Part::Registers) {
        let config = ClientConfig {
            bare: true,
            workers: 1,
            ..config(options)
        };
        cast.add("b0", &cluster, config).await;
    }
    for number in 0..cast.actors.len() {
        cast.ready(number).await;
    }

    let steps = options
        .plan
        .clone()
        .unwrap_or_else(|| schedule(options.seed, options.store, options.length));
    warm(&scribe, options).await;
    for (number, step) in steps.into_iter().enumerate() {
        let mut nemesis = Nemesis {
            cluster: &cluster,
            cast: &mut cast,
            scribe: &scribe,
            ttl: options.ttl,
        };
        nemesis.play(number, step).await;
    }
    cluster.wait_ready().await;
    if options.to_the_end {
        recover(&scribe, &cast).await;
    }

    cast.quiet().await;
    sleep(SETTLING).await;
    judge.say(What::Quiet);
    settle(&judge, &scribe).await?;
    judge.rest(judge.blind().await?);
    for number in 0..cast.actors.len() {
        if let Err(what) = cast.close(number).await {
            judge.say(What::Left { what });
        }
    }
    judge.close().await;
    witness.close().await;
    if options.to_the_end {
        for what in leftovers(&cluster).await {
            scribe.say("judge", What::Left { what });
        }
    }
    let lines = scribe.lines();
    // It may take seconds, and nobody is waiting on this thread.
    let whole = options.plan.is_none();
    let (lines, verdicts) = tokio::task::spawn_blocking(move || {
        let verdicts = match whole {
            true => check::check_run(&lines),
            false => check::check(&lines),
        };
        (lines, verdicts)
    })
    .await?;
    Ok(Ran { lines, verdicts })
}

fn config(options: &RunOptions) -> ClientConfig {
    ClientConfig {
        store: options.store,
        servers: vec![],
        who: String::new(),
        incarnation: 0,
        call_deadline: options.call_deadline,
        ttl: options.ttl,
        seed: options.seed,
        parts: options.parts.clone(),
        workers: 2,
        pause: Duration::from_millis(40),
        longest_term: options.longest_term,
        bare: false,
        mutant: options.mutant,
    }
}

/// Waits until there is load worth the name: at least [`LOAD`] calls a second.
async fn warm(scribe: &Scribe, options: &RunOptions) {
    if !options.parts.contains(&Part::Registers) || options.plan.is_some() {
        return;
    }
    let end = Instant::now() + RECOVERY;
    loop {
        sleep(Duration::from_millis(500)).await;
        if calls_a_second(&scribe.lines(), scribe.now()) >= LOAD || Instant::now() > end {
            return;
        }
    }
}

/// Waits until everything works again, or the checker has reason to complain.
async fn recover(scribe: &Scribe, cast: &Cast) {
    let end = Instant::now() + RECOVERY;
    let alive: Vec<String> = cast.actors.iter().map(crate::Actor::who).collect();
    while Instant::now() < end && !check::has_recovered(&scribe.lines(), &alive) {
        sleep(Duration::from_millis(500)).await;
    }
    // Some work afterwards.
    sleep(Duration::from_millis(500)).await;
}

/// Writes down what is there in the end, when all watches have told so or had the time to.
async fn settle(judge: &Judge, scribe: &Scribe) -> Result<(), coord_api::Error> {
    let end = Instant::now() + TELLING;
    loop {
        let (told, late) = match judge.finals().await {
            Ok(finals) => (check::watches_tell(&scribe.lines(), &finals).then_some(finals), None),
            Err(error) => (None, Some(error)),
        };
        match (told, late) {
            // Once more: nothing may have changed meanwhile.
            (Some(finals), _) if judge.finals().await.is_ok_and(|again| again == finals) => {
                judge.rest(finals);
                return Ok(());
            }
            (_, Some(error)) if Instant::now() > end + TELLING => return Err(error),
            (_, None) if Instant::now() > end => {
                judge.rest(judge.finals().await?);
                return Ok(());
            }
            _ => sleep(Duration::from_millis(200)).await,
        }
    }
}
