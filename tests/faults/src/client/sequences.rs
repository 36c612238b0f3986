use std::time::Duration;

use coord_api::{Create, CreateMode, Entry, Error, Key, Session};
use tokio::sync::watch;

use super::ours::{done, failed};
use super::recorder::Recorder;
use super::{Phase, QUEUE, is_quiet};
use crate::history::Op;

/// Between two entries.
const PAUSE: Duration = Duration::from_millis(300);

/// Makes a sequential entry, asks where it stands, deletes it, and again.
pub(super) async fn run(session: Session, recorder: Recorder, phases: watch::Receiver<Phase>) {
    let env = session.coordinator().env().clone();
    let Ok(queue) = Key::new(QUEUE) else { return };
    while !is_quiet(&phases) {
        env.sleep(PAUSE).await;
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
            (Some(entry), _) => remove(&session, &recorder, &entry).await,
            (None, crate::history::Outcome::Unknown { .. }) => session.coordinator().abandon(&create).await,
            _ => Ok(()),
        };
        if let Err(error) = removed {
            // It ends with its lease.
            recorder.note(format!("a sequential entry is left to its lease: {error}"));
        }
    }
}

async fn remove(session: &Session, recorder: &Recorder, entry: &Entry) -> Result<(), Error> {
    let coordinator = session.coordinator();
    if let Ok(standing) = coordinator.standing(entry).await
        && standing.own.is_some_and(|own| own.created != entry.created)
    {
        recorder.note("another entry has our name");
    }
    coordinator.delete(&entry.key, entry.version.into()).await
}
