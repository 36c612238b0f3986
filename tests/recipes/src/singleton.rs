use std::sync::{Arc, Mutex};

use coord_api::{
    Checkpoint, CheckpointError, CheckpointStore, Coordinator, CoordinatorCheckpoints, CoordinatorExt, Env, JobKeys,
    Key, Outcome, Progress, Session, Singleton, SingletonConfig, SingletonError, Step, Steps,
};
use tokio::sync::Notify;

use crate::{World, session};

fn job() -> Key {
    Key::new("/jobs/nightly").unwrap()
}

fn checkpoints(coordinator: &Arc<dyn Coordinator>) -> CoordinatorCheckpoints {
    CoordinatorCheckpoints::new(coordinator.clone(), JobKeys::new(&job(), None).unwrap())
}

fn next(step: &str, state: &str) -> Progress {
    Progress::Next {
        step: step.to_owned(),
        state: state.to_owned().into(),
    }
}

/// A token that the store has issued: what a leader gets.
async fn token(coordinator: &Arc<dyn Coordinator>) -> u64 {
    let name = format!("t{}", coordinator.env().nonce());
    let key = Key::new("/tokens").unwrap().child(name).unwrap();
    coordinator.create_persistent(&key, "").await.unwrap().created
}

/// One copy of the job, in a process of its own.
struct Copy {
    session: Session,
    singleton: Arc<Singleton>,
}

impl Copy {
    async fn open(world: &dyn World, name: &str, run: Option<&str>) -> Copy {
        let session = session::open(world, world.open().await);
        let config = SingletonConfig {
            run: run.map(str::to_owned),
            ..SingletonConfig::new(job(), name)
        };
        Copy {
            singleton: Arc::new(Singleton::new(&session, config).unwrap()),
            session,
        }
    }

    fn env(&self) -> &Env {
        self.session.coordinator().env()
    }

    fn start(&self, steps: Steps) -> coord_api::Task<Result<Outcome, SingletonError>> {
        let singleton = self.singleton.clone();
        self.env().spawn(async move { singleton.run(&steps).await })
    }
}

/// What the steps of all copies have done.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A step that notes from which state it starts and adds its name.
fn adds(log: &Log, name: &'static str) -> impl Fn(Step) -> futures::future::Ready<Result<String, String>> + use<> {
    let log = log.clone();
    move |step| {
        let state = String::from_utf8_lossy(step.state()).into_owned();
        log.add(format!("{name} from {state:?}"));
        futures::future::ready(Ok(format!("{state}{name}")))
    }
}

pub(crate) async fn the_next_leader_continues_where_the_last_one_left(world: Arc<dyn World>) {
    let (log, stuck) = (Log::default(), Arc::new(Notify::new()));
    let first = Copy::open(&*world, "first", None).await;
    let stuck_here = {
        let stuck = stuck.clone();
        move |_: Step| {
            stuck.notify_one();
            std::future::pending::<Result<&str, String>>()
        }
    };
    let steps = Steps::new().then("a", adds(&log, "a")).then("b", stuck_here);
    let running = first.start(steps.then("c", adds(&log, "c")));
    stuck.notified().await;
    // It dies: nothing is given back, the lease has to end by itself.
    running.abort();
    drop(running);
    drop(first);
    let second = Copy::open(&*world, "second", None).await;
    let steps = || {
        let steps = Steps::new().then("a", adds(&log, "a")).then("b", adds(&log, "b"));
        steps.then("c", adds(&log, "c"))
    };
    assert_eq!(second.singleton.run(&steps()).await.unwrap(), Outcome::Done);
    assert_eq!(log.all(), [r#"a from """#, r#"b from "a""#, r#"c from "ab""#]);
    // And once more, from the beginning: it was done.
    assert_eq!(second.singleton.run(&steps()).await.unwrap(), Outcome::Done);
    assert_eq!(log.all()[3..], log.all()[..3]);
    second.session.close().await.unwrap();
}

pub(crate) async fn a_write_with_an_older_token_is_refused(world: Arc<dyn World>) {
    let (old, new) = (world.open().await, world.open().await);
    let (older, newer) = (token(&old).await, token(&new).await);
    let (old, new) = (checkpoints(&old), checkpoints(&new));
    assert_eq!(
        old.claim(older).await.unwrap(),
        Checkpoint {
            token: older,
            ..Checkpoint::default()
        }
    );
    old.save(older, next("b", "of the older")).await.unwrap();
    let claimed = new.claim(newer).await.unwrap();
    assert_eq!((claimed.token, claimed.writer), (newer, older));
    assert_eq!(claimed.progress, next("b", "of the older"));
    for late in [next("c", "late"), Progress::Start, Progress::Done] {
        let refused = old.save(older, late).await.unwrap_err();
        assert!(
            matches!(refused, CheckpointError::Superseded { token, newer: by } if (token, by) == (older, newer)),
            "{refused}"
        );
    }
    assert!(matches!(
        old.claim(older).await,
        Err(CheckpointError::Superseded { .. })
    ));
    assert_eq!(old.load().await.unwrap(), claimed, "nothing of it was written");
    new.save(newer, next("c", "of the newer")).await.unwrap();
}

pub(crate) async fn clearing_keeps_the_token(world: Arc<dyn World>) {
    let coordinator = world.open().await;
    let (older, newer) = (token(&coordinator).await, token(&coordinator).await);
    let checkpoints = checkpoints(&coordinator);
    checkpoints.save(newer, next("b", "state")).await.unwrap();
    checkpoints.save(newer, Progress::Start).await.unwrap();
    let cleared = checkpoints.load().await.unwrap();
    assert_eq!((cleared.token, cleared.progress), (newer, Progress::Start));
    let refused = checkpoints.save(older, next("b", "late")).await;
    assert!(
        matches!(refused, Err(CheckpointError::Superseded { .. })),
        "{refused:?}"
    );
}

pub(crate) async fn a_token_that_cannot_have_been_issued_is_refused(world: Arc<dyn World>) {
    let coordinator = world.open().await;
    let checkpoints = checkpoints(&coordinator);
    let first = token(&coordinator).await;
    for nonsense in [0, u64::MAX, first + (1 << 40)] {
        let refused = checkpoints.claim(nonsense).await;
        assert!(
            matches!(refused, Err(CheckpointError::NotIssued { .. })),
            "{nonsense}: {refused:?}"
        );
        let refused = checkpoints.save(nonsense, next("b", "")).await;
        assert!(
            matches!(refused, Err(CheckpointError::NotIssued { .. })),
            "{nonsense}: {refused:?}"
        );
    }
    assert_eq!(
        checkpoints.load().await.unwrap(),
        Checkpoint::default(),
        "nobody was locked out"
    );
    checkpoints.claim(first).await.unwrap();
}

pub(crate) async fn a_cancelled_step_never_writes_its_checkpoint(world: Arc<dyn World>) {
    let copy = Copy::open(&*world, "copy", None).await;
    let observer = checkpoints(&world.open().await);
    let (log, begun) = (Log::default(), Arc::new(Notify::new()));
    let steps = {
        let (begun, log) = (begun.clone(), log.clone());
        let stops_with_a_result = move |step: Step| {
            let (begun, log) = (begun.clone(), log.clone());
            async move {
                begun.notify_one();
                step.term().stopped().await;
                log.add("b was told to stop");
                Ok::<_, String>("what a cancelled step gives")
            }
        };
        Steps::new()
            .then("a", adds(&Log::default(), "a"))
            .then("b", stops_with_a_result)
    };
    let running = copy.start(steps.then("c", adds(&log, "c")));
    begun.notified().await;
    let before = observer.load().await.unwrap();
    assert_eq!(before.progress, next("b", "a"));
    world.swallow().await;
    let lease = copy.session.lease().expect("it leads under a lease");
    copy.session.lost(lease.epoch).await;
    world.heal().await;
    // It contends again, with a newer token, and begins with the step that was cancelled.
    begun.notified().await;
    let after = observer.load().await.unwrap();
    assert_eq!((after.writer, &after.progress), (before.writer, &before.progress));
    assert!(after.token > before.token);
    assert_eq!(log.all(), ["b was told to stop"]);
    running.abort();
    copy.session.close().await.unwrap();
}

pub(crate) async fn a_run_that_is_done_is_not_run_again(world: Arc<dyn World>) {
    let log = Log::default();
    let mut copies = vec![];
    for who in 0..5 {
        copies.push(Copy::open(&*world, &format!("copy {who}"), Some("today")).await);
    }
    let steps = || Steps::new().then("a", adds(&log, "a")).then("b", adds(&log, "b"));
    let running: Vec<_> = copies.iter().map(|copy| copy.start(steps())).collect();
    let mut outcomes = vec![];
    for task in running {
        outcomes.push(task.join().await.expect("no panic").unwrap());
    }
    let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
    assert_eq!((done, log.all().len()), (1, 2), "{outcomes:?} {:?}", log.all());
    // A latecomer does not even contend; another run is another matter.
    assert_eq!(copies[0].singleton.run(&steps()).await.unwrap(), Outcome::AlreadyDone);
    let tomorrow = Copy::open(&*world, "tomorrow", Some("tomorrow")).await;
    assert_eq!(tomorrow.singleton.run(&steps()).await.unwrap(), Outcome::Done);
    for copy in copies.iter().chain([&tomorrow]) {
        copy.session.close().await.unwrap();
    }
}
