//! A simulated world: one store, several candidates, everything going wrong.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Backoff, Coordinator, Election, ElectionConfig, Env, Key, Recipe, Session, SessionConfig, Strategy, Task, Term,
};
use coord_mem::{Faults, MemClient, MemStore, Odds, StoreOptions};

use crate::history::History;
use crate::late::Late;

/// What a run gave: what was wrong, and everything that happened.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) log: Vec<String>,
    pub(crate) elections: usize,
    /// How often what went wrong.
    pub(crate) injected: BTreeMap<&'static str, u64>,
}

/// How a candidate works when it leads, and through what it sees the store.
pub(crate) trait Player: Send + Sync + 'static {
    /// The coordinator as this candidate sees it.
    fn coordinator(&self, seen: Arc<dyn Coordinator>) -> Arc<dyn Coordinator> {
        seen
    }

    /// The loop of one candidate; `work` is to be done while it leads.
    fn run(&self, election: Arc<Election>, work: Work) -> impl Future<Output = ()> + Send {
        async move {
            let _ = election.run_while_leader(|term| work.clone().during(term)).await;
        }
    }
}

/// The recipe as it is.
pub(crate) struct Honest;

impl Player for Honest {}

/// The work of one candidate.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) who: usize,
    pub(crate) env: Env,
    pub(crate) history: History,
}

impl Work {
    /// Works until told to stop, or until it has had enough; stops within half of the time it has for that.
    pub(crate) async fn during(self, term: Term) -> ControlFlow<()> {
        let (stopped, is_stopped) = (term.stopped(), || term.is_stopped());
        self.told_by(&term, stopped, is_stopped).await
    }

    /// The same, told to stop in some other way.
    pub(crate) async fn told_by(
        self,
        term: &Term,
        stopped: impl Future<Output = ()>,
        is_stopped: impl Fn() -> bool,
    ) -> ControlFlow<()> {
        let Work { who, env, history } = self;
        history.elected(&env, who, term);
        history.work_begins(env.now(), who);
        let enough = env.now() + env.random_duration(Duration::from_secs(20));
        let told = tokio::select! {
            biased;
            () = stopped => true,
            () = env.sleep_until(enough) => false,
        };
        let at = env.now();
        env.sleep(env.random_duration(STOP_WITHIN / 2)).await;
        if told {
            history.told_to_stop(at, who, term);
        }
        if told && !is_stopped() {
            history.wrong(env.now(), format!("{who} was told to stop, and then not"));
        }
        history.work_ends(env.now(), who);
        ControlFlow::Continue(())
    }
}

pub(crate) const TTL: Duration = Duration::from_secs(4);
pub(crate) const STOP_WITHIN: Duration = Duration::from_millis(600);
const TROUBLE: Duration = Duration::from_secs(40);
/// After healing: a lost lease, its backoff, the longest call, and some.
const HEALED_WITHIN: Duration = Duration::from_secs(30);

struct Candidate {
    faults: Faults,
    late: Late,
    env: Env,
    session: Session,
    election: Arc<Election>,
    task: Task,
}

/// One whole life: trouble, healing, one leader, close, nothing left.
pub(crate) async fn run<P: Player>(seed: u64, recipe: Recipe, player: P) -> Outcome {
    let world = Env::simulated(seed);
    let options = StoreOptions {
        call_deadline: Duration::from_secs(2),
        proof_lag: Duration::from_millis(world.random_u64() % 2 * 700),
    };
    let store = MemStore::with_options(&world, options);
    let key = Key::new("/election").unwrap();
    let history = History::new(&world);
    // A process that stands still works on where it stood: only without such ones can work exclude work.
    let stands_still = world.random_u64().is_multiple_of(2);
    history.everybody_runs(!stands_still);
    // Asking whether a leadership is valid ends one that is not. Half of the worlds find that out for themselves.
    let sampled = world.random_u64().is_multiple_of(2);
    let count = 2 + (world.random_u64() % 3) as usize;
    let (odds, player) = (odds(&world), Arc::new(player));
    let candidates: Vec<Candidate> = (0..count)
        .map(|who| candidate(&store, &key, recipe, who, &history, &player, odds))
        .collect();

    let mut injected = trouble(&world, &history, &candidates, stands_still, sampled).await;
    for candidate in &candidates {
        let late = BTreeMap::from([("event late", candidate.late.delayed())]);
        for (what, times) in candidate.faults.met().into_iter().chain(late) {
            *injected.entry(what).or_default() += times;
        }
    }
    for candidate in &candidates {
        candidate.faults.clear();
        candidate.late.be_on_time();
        candidate.faults.heal();
        candidate.faults.resume();
    }
    history.note(world.now(), "healed".into());
    settle(&world, &history).await;
    let watching = store.client();
    check_entries(&world, &history, &watching, &key, recipe, count).await;
    let _sessions = close(&world, &history, candidates).await;
    check_entries(&world, &history, &watching, &key, recipe, 0).await;
    let elections = history.elections();
    Outcome {
        violations: history.violations(),
        log: history.log(),
        elections,
        injected,
    }
}

fn candidate<P: Player>(
    store: &MemStore,
    key: &Key,
    recipe: Recipe,
    who: usize,
    history: &History,
    player: &Arc<P>,
    odds: Odds,
) -> Candidate {
    let client = store.client();
    let (faults, env) = (client.faults(), client.env().clone());
    faults.seeded(odds);
    let late = Late::new(client, odds.longest);
    let backoff = Backoff {
        strategy: Strategy::Constant {
            delay: Duration::from_millis(300),
        },
        ..Backoff::default()
    };
    let config = SessionConfig {
        name: format!("s{who}"),
        ttl: TTL,
        backoff,
    };
    let session = Session::open(player.coordinator(Arc::new(late.clone())), config).unwrap();
    let config = ElectionConfig {
        recipe,
        stop_within: STOP_WITHIN,
        // Two of the same name are two.
        ..ElectionConfig::new(key.clone(), format!("c{}", who / 2))
    };
    let election = Arc::new(Election::new(&session, config));
    let work = Work {
        who,
        env: env.clone(),
        history: history.clone(),
    };
    let (playing, player) = (election.clone(), player.clone());
    let task = env.spawn(async move { player.run(playing, work).await });
    Candidate {
        faults,
        late,
        env,
        session,
        election,
        task,
    }
}

fn odds(world: &Env) -> Odds {
    let some = |most: u64| (world.random_u64() % (most + 1)) as f64 / 1000.0;
    Odds {
        not_sent: some(40),
        lose_request: some(40),
        lose_answer: some(60),
        arrive_late: some(60),
        delay: some(60),
        delay_answer: some(80),
        end_lease_early: some(200),
        gap: some(40),
        longest: Duration::from_millis(1 + world.random_u64() % 2500),
    }
}

/// Cuts, swallowed packets, stopped processes; a look at everybody every now and then. What happened how often.
async fn trouble(
    world: &Env,
    history: &History,
    candidates: &[Candidate],
    stands_still: bool,
    sampled: bool,
) -> BTreeMap<&'static str, u64> {
    let mut injected = BTreeMap::new();
    let until = world.now() + TROUBLE;
    while world.now() < until {
        let who = (world.random_u64() % candidates.len() as u64) as usize;
        let Candidate { faults, env, .. } = &candidates[who];
        let what = match world.random_u64() % 12 {
            0 => (faults.cut(), "cut").1,
            1 => (faults.swallow(), "swallowed").1,
            2 if stands_still => (faults.pause(), "paused").1,
            3..6 => (faults.heal(), "healed").1,
            6..10 => (faults.resume(), "resumed").1,
            10 if stands_still => (env.jump(world.random_duration(TTL)), "jumped").1,
            _ => (faults.gap(), "gap").1,
        };
        history.note(world.now(), format!("{who} {what}"));
        *injected.entry(what).or_default() += 1;
        for _ in 0..4 {
            history.count_on();
            world.sleep(world.random_duration(Duration::from_millis(250))).await;
            if sampled {
                history.sample(world.now());
            }
        }
    }
    injected
}

/// Exactly one leader within the bound. Work ends by itself now and then: it is the being elected that counts.
async fn settle(world: &Env, history: &History) {
    let until = world.now() + HEALED_WITHIN;
    let before = history.elections();
    loop {
        history.sample(world.now());
        if history.elections() > before && history.leaders().len() == 1 {
            return;
        }
        if world.now() >= until {
            if history.leaders().len() != 1 {
                history.wrong(world.now(), "no leader after healing".into());
            }
            return;
        }
        world.sleep(Duration::from_millis(100)).await;
    }
}

/// At most one entry per candidate that takes part.
async fn check_entries(
    world: &Env,
    history: &History,
    client: &Arc<MemClient>,
    key: &Key,
    recipe: Recipe,
    candidates: usize,
) {
    let entries = match recipe {
        Recipe::Sequence => client.children(key).await.unwrap(),
        Recipe::Cas => client.get(key).await.unwrap().into_iter().collect(),
    };
    if entries.len() > candidates {
        history.wrong(world.now(), format!("of {candidates} candidates: {entries:?}"));
    }
}

async fn close(world: &Env, history: &History, candidates: Vec<Candidate>) -> Vec<Session> {
    let mut sessions = vec![];
    for (who, candidate) in candidates.into_iter().enumerate() {
        let closed = async {
            candidate.election.close().await;
            candidate.task.join().await;
        };
        if world.timeout_at(world.now() + HEALED_WITHIN, closed).await.is_none() {
            history.wrong(world.now(), format!("{who} did not close"));
        }
        history.note(world.now(), format!("{who} closed, {:?}", candidate.session));
        // What an election leaves must not need the end of the session to vanish.
        sessions.push(candidate.session);
    }
    // Leases that were lost end by themselves; those of today are kept alive by the sessions.
    world.sleep(TTL + Duration::from_secs(1)).await;
    sessions
}

/// A runtime of its own for each seed, with virtual time.
pub(crate) fn simulate<P: Player>(seed: u64, recipe: Recipe, player: P) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run(seed, recipe, player))
}
