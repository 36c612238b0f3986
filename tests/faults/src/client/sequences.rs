use std::sync::Arc;
use std::time::Duration;

use coord_api::{Create, CreateMode, Entry, Error, Key, Session};
use tokio::sync::watch;

use super::bare::Bare;
use super::ours::{done, failed};
use super::recorder::Recorder;
use super::registers::Performer;
use super::{Phase, QUEUE, is_quiet, nanos};
use crate::history::{Op, Outcome, What};

/// The longest pause between two entries, and the longest that one stays: often two stand at once.
const PAUSE: Duration = Duration::from_millis(300);

/// Makes a sequential entry, asks after a while where it stands, deletes it, and again.
pub(super) async fn run(session: Session, recorder: Recorder, phases: watch::Receiver<Phase>) {
    let env = session.coordinator().env().clone();
    let Ok(queue) = Key::new(QUEUE) else { return };
    while !is_quiet(&phases) {
        env.sleep(env.random_duration(PAUSE)).await;
        let Some(lease) = session.lease() else { continue };
        let mode = CreateMode::Sequential(lease.lease);
        let create = Create::new(&env, queue.clone(), recorder.who().to_owned(), mode);
        let doing = async {
            match session.coordinator().create(&create).await {
                Ok(entry) => (done(&entry), Some(entry)),
                Err(error) => (failed(error), None),
            }
        };
        let op = Op::Sequential { key: QUEUE.to_owned() };
        let (outcome, entry) = recorder.call(op, doing).await;
        let removed = match (entry, outcome) {
            (Some(entry), _) => {
                recorder.say(What::Entered {
                    key: entry.key.to_string(),
                    created: entry.created,
                    lease: lease.lease.0,
                    until: nanos(lease.good_until().since_start()),
                });
                env.sleep(env.random_duration(PAUSE)).await;
                remove(&session, &recorder, &entry).await
            }
            (None, Outcome::Unknown { .. }) => session.coordinator().abandon(&create).await,
            _ => Ok(()),
        };
        if let Err(error) = removed {
            // It ends with its lease.
            recorder.note(format!("a sequential entry is left to its lease: {error}"));
        }
    }
}

/// Makes one after the other with the store's own library. They stay: nothing but their order is looked at.
pub(super) async fn run_bare(bare: Arc<Bare>, recorder: Recorder, phases: watch::Receiver<Phase>) {
    while !is_quiet(&phases) {
        tokio::time::sleep(PAUSE).await;
        let op = Op::Sequential {
            key: format!("/bare{QUEUE}"),
        };
        let doing = async { (bare.perform(&op).await, ()) };
        recorder.call(op.clone(), doing).await;
    }
}

async fn remove(session: &Session, recorder: &Recorder, entry: &Entry) -> Result<(), Error> {
    let (coordinator, created) = (session.coordinator(), entry.created);
    let from = recorder.now();
    if let Ok(standing) = coordinator.standing(entry).await {
        recorder.say(What::Stood {
            from,
            created,
            own: standing.own.map(|own| own.created),
            predecessor: standing.predecessor.map(|key| key.to_string()),
        });
    }
    recorder.say(What::Leaving { created });
    coordinator.delete(&entry.key, entry.version.into()).await?;
    recorder.say(What::Removed { created });
    Ok(())
}
