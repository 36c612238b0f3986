//! Watches of a store's own client library, with the least that makes them right: what they get wrong is the store's doing.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{EventType, GetOptions, WatchOptions};
use tokio::time::{sleep, timeout};
use zookeeper_client::{Error as ZkError, EventType as ZkEvent};

use super::bare::{Bare, current, of_etcd, of_zookeeper};
use super::recorder::Recorder;
use super::registers::Performer;
use super::{CALL_DEADLINE, CHAINED, KEYS};
use crate::history::{Held, Op, Outcome, Seen, What};

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

/// The keys that are watched.
pub(super) fn keys() -> impl Iterator<Item = String> {
    (0..KEYS).map(|n| format!("/bare{CHAINED}/k{n}"))
}

/// Follows a key for ever: reads it and watches from there on, and after every break again.
pub(super) async fn follow(bare: Arc<Bare>, recorder: Recorder, key: String) {
    let watch = recorder.number();
    recorder.say(What::Watching {
        watch,
        target: key.clone(),
        children: false,
    });
    let tell = |whole: bool, created: u64, held: Option<Held>| {
        let seen = vec![Seen {
            key: key.clone(),
            created,
            held,
        }];
        recorder.say(What::Seen { watch, whole, seen });
    };
    loop {
        let ended = match &*bare {
            Bare::Etcd(client) => on_etcd(client, &key, &tell).await,
            Bare::ZooKeeper { .. } => on_zookeeper(&bare, &key, &tell).await,
        };
        if let Err(error) = ended {
            recorder.note(format!("watch {watch}: {error}"));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Reads what is there in the end.
pub(super) async fn finals(bare: &Bare, recorder: &Recorder) {
    for key in keys() {
        for _ in 0..3 {
            let op = Op::GetLatest { key: key.clone() };
            let doing = async { (bare.perform(&op).await, ()) };
            if let (Outcome::Found { held }, ()) = recorder.call(op.clone(), doing).await {
                recorder.say(What::Final { key, held });
                break;
            }
        }
    }
}

async fn on_etcd(client: &etcd_client::Client, key: &str, tell: &impl Fn(bool, u64, Option<Held>)) -> Ended {
    let mut store = client.kv_client();
    let read = timeout(CALL_DEADLINE, store.get(key, None::<GetOptions>)).await??;
    let revision = read.header().ok_or("no header")?.revision();
    let held = read.kvs().first().map(of_etcd);
    tell(true, held.as_ref().map_or(0, |held| held.created), held);
    let options = WatchOptions::new().with_start_revision(revision + 1).with_prev_key();
    let mut stream = timeout(CALL_DEADLINE, client.watch_client().watch(key, Some(options))).await??;
    while let Some(answer) = stream.message().await? {
        if answer.canceled() {
            return Err("cancelled".into());
        }
        for event in answer.events() {
            match (event.event_type(), event.kv(), event.prev_kv()) {
                (EventType::Put, Some(now), _) => tell(false, now.create_revision().unsigned_abs(), Some(of_etcd(now))),
                (EventType::Delete, _, Some(before)) => tell(false, before.create_revision().unsigned_abs(), None),
                _ => return Err("a deletion without what was there".into()),
            }
        }
    }
    Ok(())
}

async fn on_zookeeper(bare: &Bare, key: &str, tell: &impl Fn(bool, u64, Option<Held>)) -> Ended {
    let client = timeout(CALL_DEADLINE, current(bare)).await??;
    // A session of its own may be at a server that is behind.
    let mut writer = client.new_multi_writer();
    writer.add_check_version("/", -1)?;
    timeout(CALL_DEADLINE, writer.commit()).await??;
    loop {
        let watcher = match client.get_and_watch_data(key).await {
            Ok((value, stat, watcher)) => {
                let held = of_zookeeper(&value, &stat);
                tell(true, held.created, Some(held));
                watcher
            }
            Err(ZkError::NoNode) => match client.check_and_watch_stat(key).await? {
                (None, watcher) => {
                    tell(true, 0, None);
                    watcher
                }
                // It came in between.
                _ => continue,
            },
            Err(error) => return Err(error.into()),
        };
        if watcher.changed().await.event_type == ZkEvent::Session {
            return Err("the session is over".into());
        }
    }
}
