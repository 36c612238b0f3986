use std::collections::{BTreeMap, BTreeSet};

use coord_api::driver::WatchSender;
use coord_api::{Entry, Key};
use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use zookeeper_client::{Error as ZkError, EventType, OneshotWatcher};

use super::key::{get_and_watch_there, watch_absent};
use super::{Broken, Source};
use crate::conn::Conn;
use crate::names;

/// How many children are read at the same time.
const AT_ONCE: usize = 64;

/// The children of one key on one session: a watcher on the list, and one on each child.
struct Children<'a> {
    source: &'a Source,
    conn: &'a Conn,
    parent: &'a Key,
    sender: &'a WatchSender,
    known: BTreeMap<Key, (Entry, AbortHandle)>,
    /// Each tells which child changed; `None` if it was given up because the child is gone.
    watchers: FuturesUnordered<BoxFuture<'static, Option<(Key, EventType)>>>,
    started: bool,
}

/// Follows the children of one key on one session.
pub(super) async fn follow(source: &Source, conn: &Conn, parent: &Key, sender: &WatchSender) -> Broken {
    let children = Children {
        source,
        conn,
        parent,
        sender,
        known: BTreeMap::new(),
        watchers: FuturesUnordered::new(),
        started: false,
    };
    match children.run().await {
        Ok(never) => match never {},
        Err(broken) => broken,
    }
}

impl Children<'_> {
    async fn run(mut self) -> Result<std::convert::Infallible, Broken> {
        loop {
            let (listed, list_watcher) = self.list().await?;
            self.compare(listed).await?;
            if !self.started {
                self.started = true;
                self.sender
                    .state(self.known.values().map(|(entry, _)| entry.clone()).collect());
            }
            let mut list_changed = std::pin::pin!(list_watcher.changed());
            loop {
                tokio::select! {
                    event = &mut list_changed => match event.event_type {
                        EventType::Session => return Err(Broken::Session),
                        _ => break,
                    },
                    Some(event) = self.watchers.next() => match event {
                        None => {}
                        Some((_, EventType::Session)) => return Err(Broken::Session),
                        Some((key, _)) => self.refresh(vec![key]).await?,
                    },
                }
            }
        }
    }

    /// The names now, and a watcher for the next change; for a parent that is not there, for its creation.
    async fn list(&mut self) -> Result<(Vec<Key>, OneshotWatcher), Broken> {
        loop {
            let path = self.parent.clone();
            let answer = self
                .conn
                .read(|client| async move { client.list_and_watch_children(path.as_str()).await })
                .await
                .map_err(|_| Broken::Session)?;
            match answer {
                Ok((names, watcher)) => {
                    let at_server_root = self.source.config.chroot() == "/";
                    return Ok((names::visible_children(self.parent, at_server_root, names), watcher));
                }
                Err(ZkError::NoNode) => {}
                Err(error) => {
                    self.source.after(error, self.conn).await?;
                    continue;
                }
            }
            match watch_absent(self.conn, self.parent).await? {
                Ok(Some(watcher)) => return Ok((Vec::new(), watcher)),
                Ok(None) => {}
                Err(error) => self.source.after(error, self.conn).await?,
            }
        }
    }

    /// Tells of those that are gone, and reads those that are new. What became of the others, their watchers tell.
    async fn compare(&mut self, listed: Vec<Key>) -> Result<(), Broken> {
        let names: BTreeSet<&Key> = listed.iter().collect();
        let gone: Vec<Key> = self.known.keys().filter(|key| !names.contains(key)).cloned().collect();
        for key in gone {
            self.gone(&key);
        }
        let new = listed.into_iter().filter(|key| !self.known.contains_key(key)).collect();
        self.refresh(new).await
    }

    /// Reads these children and watches them anew.
    async fn refresh(&mut self, keys: Vec<Key>) -> Result<(), Broken> {
        let (source, conn) = (self.source, self.conn);
        let mut answers = futures::stream::iter(keys)
            .map(|key| async move {
                loop {
                    match get_and_watch_there(conn, &key).await? {
                        Ok(seen) => return Ok((key, Some(seen))),
                        Err(ZkError::NoNode) => return Ok((key, None)),
                        Err(error) => source.after(error, conn).await?,
                    }
                }
            })
            .buffered(AT_ONCE);
        let mut seen = Vec::new();
        while let Some(answer) = answers.next().await {
            seen.push(answer?);
        }
        drop(answers);
        for (key, seen) in seen {
            match seen {
                None => self.gone(&key),
                Some((entry, watcher)) => self.there(entry, watcher),
            }
        }
        Ok(())
    }

    fn there(&mut self, entry: Entry, watcher: OneshotWatcher) {
        let (abort, registration) = AbortHandle::new_pair();
        let key = entry.key.clone();
        let changed = async move { (key, watcher.changed().await.event_type) };
        self.watchers
            .push(Abortable::new(changed, registration).map(Result::ok).boxed());
        let before = self.known.insert(entry.key.clone(), (entry.clone(), abort));
        if let Some((_, abort)) = &before {
            abort.abort();
        }
        let changed = before.is_none_or(|(before, _)| before.version != entry.version);
        if self.started && changed {
            self.sender.put(entry);
        }
    }

    fn gone(&mut self, key: &Key) {
        let Some((entry, abort)) = self.known.remove(key) else {
            return;
        };
        abort.abort();
        if self.started {
            self.sender.delete(key.clone(), entry.created);
        }
    }
}
