//! What a reader of a watch knows, and whether it was told rightly.

use std::collections::BTreeMap;
use std::time::Duration;

use coord_api::{Coordinator, Entry, Error, Key, Target, Watch, WatchEvent};

use crate::failure::{Checked, Failure};

/// How long to wait for an event. The contract sets no limit; a store that needs longer is not watched but polled.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A watch, and the state that its events add up to.
pub(crate) struct View {
    watch: Watch,
    target: Target,
    env: coord_api::Env,
    entries: BTreeMap<Key, Entry>,
    /// The newest incarnation ever seen per key.
    newest: BTreeMap<Key, u64>,
    events: usize,
}

impl View {
    /// Starts a watch and reads its first event, which must be the state.
    pub(crate) async fn open(client: &(impl Coordinator + ?Sized), target: Target) -> Checked<View> {
        let mut view = View::unread(client, target).await?;
        view.step().await?;
        Ok(view)
    }

    /// Starts a watch and reads nothing.
    pub(crate) async fn unread(client: &(impl Coordinator + ?Sized), target: Target) -> Checked<View> {
        Ok(View {
            watch: client.watch(&target).await?,
            target,
            env: client.env().clone(),
            entries: BTreeMap::new(),
            newest: BTreeMap::new(),
            events: 0,
        })
    }

    /// The state that the events so far add up to, ordered by name.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.values().cloned().collect()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// How many events were read.
    pub(crate) fn events(&self) -> usize {
        self.events
    }

    /// Reads the next event, checks it, and adds it to the state.
    pub(crate) async fn step(&mut self) -> Checked<WatchEvent> {
        match self.take("an event").await? {
            Some(Ok(event)) => {
                self.apply(&event)?;
                Ok(event)
            }
            Some(Err(error)) => Err(Failure::new(format!(
                "watch of {:?}: expected an event, saw {error:?}",
                self.target
            ))),
            None => Err(Failure::new(format!(
                "watch of {:?}: expected an event, saw the end",
                self.target
            ))),
        }
    }

    /// Reads until the state is as wanted.
    pub(crate) async fn until(&mut self, what: &str, wanted: impl Fn(&View) -> bool) -> Checked {
        let deadline = self.env.now() + PATIENCE;
        while !wanted(self) {
            check!(
                self.env.now() < deadline,
                "watch of {:?}: expected {what}, saw {:?}",
                self.target,
                self.entries
            );
            self.step()
                .await
                .map_err(|failure| Failure::new(format!("waiting for {what}: {failure}; so far {:?}", self.entries)))?;
        }
        Ok(())
    }

    /// Reads what is left and gives the error that ends it.
    pub(crate) async fn end(&mut self) -> Checked<Error> {
        let error = loop {
            match self.take("the end").await? {
                Some(Ok(event)) => self.apply(&event)?,
                Some(Err(error)) => break error,
                None => return Err(Failure::new("the watch ended without saying why")),
            }
        };
        match self.take("nothing after the end").await? {
            None => Ok(error),
            Some(more) => Err(Failure::new(format!(
                "after the end {error:?}: expected nothing, saw {more:?}"
            ))),
        }
    }

    async fn take(&mut self, what: &str) -> Checked<Option<coord_api::Result<WatchEvent>>> {
        let deadline = self.env.now() + PATIENCE;
        let target = &self.target;
        let taken = self.env.timeout_at(deadline, self.watch.next()).await;
        taken.ok_or_else(|| {
            Failure::new(format!(
                "watch of {target:?}: expected {what}, saw nothing for {PATIENCE:?}"
            ))
        })
    }

    fn apply(&mut self, event: &WatchEvent) -> Checked {
        let target = &self.target;
        let first = self.events == 0;
        self.events += 1;
        match event {
            WatchEvent::State(_) => check!(first, "watch of {target:?}: expected one State, first; saw another"),
            _ => check!(!first, "watch of {target:?}: expected the State first, saw {event:?}"),
        }
        match event {
            WatchEvent::State(entries) | WatchEvent::Resync(entries) => {
                check!(
                    entries.is_sorted_by(|a, b| a.key < b.key),
                    "watch of {target:?}: expected a state ordered by name, saw {entries:?}"
                );
                self.entries.clear();
                for entry in entries {
                    self.put(entry)?;
                }
            }
            WatchEvent::Put(entry) => self.put(entry)?,
            WatchEvent::Delete { key, created } => {
                self.seen(key, *created)?;
                self.entries.remove(key);
                // Nothing of this incarnation may come again.
                self.newest.insert(key.clone(), created + 1);
            }
        }
        Ok(())
    }

    fn put(&mut self, entry: &Entry) -> Checked {
        self.seen(&entry.key, entry.created)?;
        self.entries.insert(entry.key.clone(), entry.clone());
        Ok(())
    }

    fn seen(&mut self, key: &Key, created: u64) -> Checked {
        let target = &self.target;
        check!(
            target.covers(key),
            "watch of {target:?}: expected nothing of {key}, saw an event of it"
        );
        let newest = self.newest.entry(key.clone()).or_insert(created);
        check!(
            created >= *newest,
            "watch of {target:?}: {key} went back in time: expected an incarnation from {newest} on, saw {created}"
        );
        *newest = created;
        Ok(())
    }
}
