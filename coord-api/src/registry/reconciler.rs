use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::Inner;
use super::instance::Value;
use super::job::{Done, Job, Outcome};
use super::shards::Shards;
use crate::{Coordinator, Instant, Key, Result, Target, Task, WatchEvent};

/// The pause after a failure, doubling up to the longest; a success ends it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Events that wait to be looked at; the watches merge the rest.
const EVENTS: usize = 64;

/// The loop behind a registry: makes what is there what is wanted.
pub(super) struct Reconciler {
    inner: Arc<Inner>,
    shards: Shards,
    watches: BTreeMap<Key, Task>,
    events: mpsc::Sender<(Key, WatchEvent)>,
    pause: Duration,
    not_before: Instant,
}

impl Reconciler {
    /// Runs until the registry or its session is closed.
    pub(super) async fn run(inner: Arc<Inner>, shards: Shards) -> Result<()> {
        let (events, mut seen) = mpsc::channel(EVENTS);
        let mut this = Reconciler {
            not_before: inner.env().now(),
            inner,
            shards,
            watches: BTreeMap::new(),
            events,
            pause: FIRST_PAUSE,
        };
        let mut jobs = FuturesUnordered::new();
        loop {
            // All that waits, before the next jobs: an old state that is read late casts doubt on what was written since.
            for _ in 0..EVENTS {
                match seen.try_recv() {
                    Ok((service, event)) => this.saw(&service, event),
                    Err(_) => break,
                }
            }
            this.follow_services();
            let renewed = this.shards.renewed();
            if !renewed.is_empty() {
                let mut book = this.inner.book();
                renewed.into_iter().for_each(|shard| book.shard_changed(shard));
                drop(book);
                this.inner.set_looked(this.shards.looked());
            }
            if this.shards.is_closed() || (this.inner.is_closing() && this.inner.book().is_settled()) {
                break;
            }
            let env = this.inner.env().clone();
            let wait = env.now() < this.not_before;
            while !wait && jobs.len() < this.inner.config.pipeline {
                match this.next_job() {
                    Some(job) => jobs.push(job.run()),
                    None => break,
                }
            }
            this.inner.progress.send_replace(());
            let not_before = this.not_before;
            let due = async {
                match wait {
                    true => env.sleep_until(not_before).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(done) = jobs.next(), if !jobs.is_empty() => this.done(done),
                Some((service, event)) = seen.recv() => this.saw(&service, event),
                () = this.inner.wishes.notified() => {}
                () = this.shards.changed() => {}
                () = due => {}
            }
        }
        drop(jobs);
        let closed = this.shards.close().await;
        this.inner.progress.send_replace(());
        closed
    }

    fn next_job(&mut self) -> Option<Job> {
        let taken = self.inner.book().take(|shard| self.shards.lease(shard))?;
        Some(Job {
            coordinator: self.inner.session.coordinator().clone(),
            identity: self.inner.identity.clone(),
            key: taken.key,
            want: taken.want,
            lease: taken.lease,
            newest: taken.newest,
            known: taken.known,
        })
    }

    fn done(&mut self, done: Done) {
        let key = done.key.clone();
        let removed = matches!(done.outcome, Outcome::Settled) && done.known.held.is_none();
        enum Next {
            Quick,
            Slow,
            Doubt,
            Full,
        }
        let next = match &done.outcome {
            Outcome::Settled | Outcome::Taken(_) | Outcome::Again => Next::Quick,
            Outcome::Full => Next::Full,
            Outcome::NoLease => Next::Doubt,
            Outcome::Failed(error) => {
                debug!(%key, "could not bring the entry to its wanted state: {error}");
                Next::Slow
            }
        };
        let shard = self.inner.book().done(done);
        match (next, shard) {
            (Next::Quick, Some(shard)) => {
                self.pause = FIRST_PAUSE;
                if removed {
                    self.shards.has_room(shard);
                }
            }
            (Next::Full, Some(shard)) => match self.shards.after_full(shard) {
                Ok(other) => {
                    self.inner.book().move_to(&key, other);
                    self.inner.set_looked(self.shards.looked());
                }
                Err(error) => {
                    warn!("no further lease for the registry: {error}");
                    self.back_off();
                }
            },
            (Next::Doubt, Some(shard)) => {
                self.shards.doubt(shard);
                self.back_off();
            }
            _ => self.back_off(),
        }
    }

    /// One pause for all: what fails for one entry mostly fails for all.
    fn back_off(&mut self) {
        let env = self.inner.env();
        let now = env.now();
        if now >= self.not_before {
            self.not_before = now + self.pause - env.random_duration(self.pause / 5);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn saw(&self, service: &Key, event: WatchEvent) {
        let identity = &self.inner.identity;
        self.inner.book().saw(service, event, |entry| {
            Value::decode(&entry.value).is_some_and(|value| value.owner == identity.owner && !identity.wrote(&value))
        });
    }

    /// One watch per service with an entry of ours.
    fn follow_services(&mut self) {
        let Some(services) = self.inner.book().services_if_changed() else {
            return;
        };
        self.watches.retain(|service, _| services.contains(service));
        for service in services {
            if !self.watches.contains_key(&service) {
                let coordinator = self.inner.session.coordinator().clone();
                let follow = follow(coordinator, service.clone(), self.events.clone());
                self.watches.insert(service, self.inner.env().spawn(follow));
            }
        }
    }
}

/// Passes on what a watch tells. A reader that is busy holds nobody up: the watch merges.
async fn follow(coordinator: Arc<dyn Coordinator>, service: Key, events: mpsc::Sender<(Key, WatchEvent)>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match coordinator.watch(&Target::Children(service.clone())).await {
            Ok(mut watch) => {
                pause = FIRST_PAUSE;
                while let Some(Ok(event)) = watch.next().await {
                    if events.send((service.clone(), event)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => debug!(%service, "could not watch the service: {error}"),
        }
        coordinator.env().sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
