use std::time::Duration;

use coord_api::driver::WatchSender;
use coord_api::{Entry, Key};
use zookeeper_client::{Error as ZkError, EventType, OneshotWatcher};

use super::{Broken, Source};
use crate::conn::Conn;
use crate::read;

/// Who waited for a deletion most often stops watching then: within this time, no request is made in vain, and none in
/// the way of what that one does next.
const STILL_WATCHED: Duration = Duration::from_millis(2);

/// Follows one key on one session.
pub(super) async fn follow(source: &Source, conn: &Conn, key: &Key, sender: &WatchSender) -> Broken {
    let mut last: Option<Option<Entry>> = None;
    let mut there = true;
    loop {
        let (now, watcher) = match get_and_watch(source, conn, key, there).await {
            Ok(seen) => seen,
            Err(broken) => return broken,
        };
        match (&last, &now) {
            (None, now) => sender.state(now.iter().cloned().collect()),
            (Some(Some(before)), None) => sender.delete(key.clone(), before.created),
            // Delete-and-recreate shows in the version, too: it holds the czxid.
            (Some(before), Some(now)) if before.as_ref().is_none_or(|before| before.version != now.version) => {
                sender.put(now.clone());
            }
            _ => {}
        }
        let event = watcher.changed().await.event_type;
        there = event != EventType::NodeDeleted;
        last = match (event, now) {
            (EventType::Session, _) => return Broken::Session,
            // What was seen is gone, whatever has come since. Whoever waits for that hears it before anything more is
            // asked: a hand-over waits for nothing else.
            (EventType::NodeDeleted, Some(seen)) => {
                sender.delete(key.clone(), seen.created);
                source.env.sleep(STILL_WATCHED).await;
                Some(None)
            }
            (_, now) => Some(now),
        };
    }
}

/// The entry, or nothing, and a watcher that tells of the next change. `there` is where to look first.
async fn get_and_watch(
    source: &Source,
    conn: &Conn,
    key: &Key,
    mut there: bool,
) -> Result<(Option<Entry>, OneshotWatcher), Broken> {
    loop {
        if there {
            match get_and_watch_there(conn, key).await? {
                Ok((entry, watcher)) => return Ok((Some(entry), watcher)),
                Err(ZkError::NoNode) => there = false,
                Err(error) => source.after(error, conn).await?,
            }
        } else {
            match watch_absent(conn, key).await? {
                Ok(Some(watcher)) => return Ok((None, watcher)),
                Ok(None) => there = true,
                Err(error) => source.after(error, conn).await?,
            }
        }
    }
}

/// An entry that is there, and a watcher for its change or end.
pub(super) async fn get_and_watch_there(
    conn: &Conn,
    key: &Key,
) -> Result<Result<(Entry, OneshotWatcher), ZkError>, Broken> {
    let path = key.clone();
    let answer = conn
        .read(|client| async move { client.get_and_watch_data(path.as_str()).await })
        .await
        .map_err(|_| Broken::Session)?;
    Ok(answer.map(|(stored, stat, watcher)| (read::entry(key, stored, &stat), watcher)))
}

/// A watcher for the creation of what is not there; `None` if it is.
pub(super) async fn watch_absent(conn: &Conn, key: &Key) -> Result<Result<Option<OneshotWatcher>, ZkError>, Broken> {
    let path = key.clone();
    let answer = conn
        .read(|client| async move { client.check_and_watch_stat(path.as_str()).await })
        .await
        .map_err(|_| Broken::Session)?;
    Ok(answer.map(|(stat, watcher)| stat.is_none().then_some(watcher)))
}
