use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Entry, Instant, Key, Target};
use etcd_client::WatchResponse;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::Command;
use super::stream::{Stream, refused};
use super::subscription::{Phase, Subscription};
use crate::entries::get_many;
use crate::failure::{Failure, Reason};
use crate::keyspace::{Keyspace, unsigned};
use crate::listing;
use crate::pool::{Call, Pool, Repeat};

/// So many keys are read at once, and so many reads are on their way at a time.
const BATCH: usize = 100;
const READS: usize = 4;
const READ_WITHIN: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The states that were asked for, by watch, and the revision that they show.
type States = Result<(Vec<(i64, Vec<Entry>)>, u64), (Vec<i64>, Failure)>;

/// Owns the stream and all watches on it.
pub(super) struct Actor {
    pool: Arc<Pool>,
    space: Keyspace,
    inbox: mpsc::UnboundedReceiver<Command>,
    watches: BTreeMap<i64, Subscription>,
    tickets: BTreeMap<u64, i64>,
    next_id: i64,
    stream: Option<Stream>,
    /// Watches asked for and not answered yet: a refusal does not name its watch, but answers come in order.
    asked: VecDeque<i64>,
    to_read: BTreeSet<i64>,
    /// Not to be read before this moment, after a read failed.
    read_after: Instant,
    reads: FuturesUnordered<Pin<Box<dyn Future<Output = States> + Send>>>,
    pause: Duration,
}

impl Actor {
    pub(super) fn new(pool: Arc<Pool>, space: Keyspace, inbox: mpsc::UnboundedReceiver<Command>) -> Actor {
        Actor {
            read_after: pool.env.now(),
            pool,
            space,
            inbox,
            watches: BTreeMap::new(),
            tickets: BTreeMap::new(),
            // 0 lets etcd choose, 1 is the stream's anchor.
            next_id: 2,
            stream: None,
            asked: VecDeque::new(),
            to_read: BTreeSet::new(),
            reads: FuturesUnordered::new(),
            pause: FIRST_PAUSE,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let go_on = if self.watches.is_empty() {
                self.idle().await
            } else if self.stream.is_none() {
                self.connect().await
            } else {
                self.serve().await
            };
            if !go_on {
                return;
            }
        }
    }

    /// Nobody watches: no stream is held.
    async fn idle(&mut self) -> bool {
        self.drop_stream();
        let command = self.inbox.recv().await;
        self.command(command)
    }

    async fn connect(&mut self) -> bool {
        let (pool, space) = (self.pool.clone(), self.space.clone());
        let mut opening = std::pin::pin!(Stream::open(&pool, &space));
        let opened = loop {
            tokio::select! {
                biased;
                command = self.inbox.recv() => if !self.command(command) {
                    return false;
                },
                opened = &mut opening => break opened,
            }
        };
        match opened {
            Ok(stream) => {
                self.asked.clear();
                self.to_read.clear();
                for (id, watch) in &mut self.watches {
                    watch.phase = Phase::Creating;
                    stream.create(&self.space, *id, &watch.target);
                    self.asked.push_back(*id);
                }
                self.stream = Some(stream);
                self.pause = FIRST_PAUSE;
            }
            Err(failure) => {
                tracing::debug!(?failure, "no watch stream");
                if !failure.is_transient() {
                    // Whoever waits for a first state is told why; the others stay, and it is tried again.
                    let waiting: Vec<i64> = self
                        .watches
                        .iter()
                        .filter(|(_, watch)| watch.is_new())
                        .map(|(id, _)| *id)
                        .collect();
                    waiting.into_iter().for_each(|id| self.refuse(id, failure.clone()));
                }
                let until = self.pool.env.now() + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                loop {
                    tokio::select! {
                        biased;
                        command = self.inbox.recv() => if !self.command(command) {
                            return false;
                        },
                        () = pool.env.sleep_until(until) => break,
                    }
                }
            }
        }
        true
    }

    async fn serve(&mut self) -> bool {
        self.start_reads();
        let env = self.pool.env.clone();
        let Some(stream) = &mut self.stream else { return true };
        let reading = !self.to_read.is_empty() && self.reads.len() < READS;
        let due = if reading {
            stream.due().min(self.read_after)
        } else {
            stream.due()
        };
        tokio::select! {
            biased;
            message = stream.next() => match message {
                Ok(message) => {
                    stream.hear(&self.pool);
                    self.message(message);
                }
                Err(failure) => {
                    tracing::debug!(?failure, "the watch stream broke");
                    self.lose_stream(false);
                }
            },
            command = self.inbox.recv() => return self.command(command),
            Some(states) = self.reads.next() => self.states(states),
            () = env.sleep_until(due) => {
                if stream.due() <= env.now() && !stream.check(&self.pool) {
                    tracing::debug!("the watch stream fell silent");
                    self.lose_stream(true);
                }
            }
        }
        true
    }

    /// Returns whether to go on.
    fn command(&mut self, command: Option<Command>) -> bool {
        match command {
            Some(Command::Add {
                target,
                sender,
                ready,
                ticket,
            }) => {
                let id = self.next_id;
                self.next_id += 1;
                if let Some(stream) = &self.stream {
                    stream.create(&self.space, id, &target);
                    self.asked.push_back(id);
                }
                self.tickets.insert(ticket, id);
                self.watches
                    .insert(id, Subscription::new(target, sender, ready, ticket));
            }
            Some(Command::Cancel(ticket)) => {
                if let Some(id) = self.tickets.remove(&ticket)
                    && self.watches.remove(&id).is_some()
                    && let Some(stream) = &self.stream
                {
                    stream.cancel(id);
                }
            }
            Some(Command::Close) | None => return false,
        }
        true
    }

    fn message(&mut self, message: WatchResponse) {
        let revision = message.header().map_or(0, |header| unsigned(header.revision()));
        // No read takes back what a watch has told.
        self.pool.saw(revision);
        if message.created() {
            let Some(id) = self.asked.pop_front() else { return };
            if message.canceled() {
                self.cancelled(id, &message);
            } else if let Some(watch) = self.watches.get_mut(&id) {
                watch.phase = Phase::Reading(revision, BTreeMap::new());
                self.to_read.insert(id);
            }
            return;
        }
        let id = message.watch_id();
        if message.canceled() {
            if self.watches.contains_key(&id) {
                self.cancelled(id, &message);
            }
        } else if let Some(watch) = self.watches.get_mut(&id) {
            watch.events(&self.space, message.events());
        }
    }

    /// The store ended a watch, or did not take it.
    fn cancelled(&mut self, id: i64, message: &WatchResponse) {
        let failure = refused(message.cancel_reason());
        if message.compact_revision() != 0 {
            // The stream fell behind a compaction. Not every watch that lost events is told so (etcd lets the others jump
            // over them), so all begin anew.
            tracing::debug!("a compaction has overtaken the watch stream");
            self.drop_stream();
        } else if failure.reason == Reason::Token {
            // Old watches outlive their token, new ones do not: a new stream logs in again.
            self.lose_stream(true);
        } else if !failure.is_transient() {
            self.refuse(id, failure);
        } else {
            self.ask_again(id);
        }
    }

    /// Under a new id: etcd does not take one twice on a stream, and what is still being read for the old one does not
    /// show what happened until the new watch was there.
    fn ask_again(&mut self, old: i64) {
        let Some(stream) = &self.stream else { return };
        let Some(mut watch) = self.watches.remove(&old) else {
            return;
        };
        let id = self.next_id;
        self.next_id += 1;
        watch.phase = Phase::Creating;
        stream.create(&self.space, id, &watch.target);
        self.asked.push_back(id);
        self.tickets.insert(watch.ticket, id);
        self.watches.insert(id, watch);
    }

    fn refuse(&mut self, id: i64, failure: Failure) {
        if let Some(watch) = self.watches.remove(&id) {
            self.tickets.remove(&watch.ticket);
            watch.refuse(failure);
        }
    }

    fn start_reads(&mut self) {
        while self.reads.len() < READS && !self.to_read.is_empty() && self.read_after <= self.pool.env.now() {
            let mut keys: Vec<(i64, Key)> = Vec::new();
            let mut at_least = 0;
            // Each list is a read of its own.
            while keys.len() < BATCH && self.reads.len() < READS {
                let Some(id) = self.to_read.pop_first() else { break };
                let Some(watch) = self.watches.get(&id).filter(|watch| !watch.is_cancelled()) else {
                    continue;
                };
                let Phase::Reading(since, _) = &watch.phase else {
                    continue;
                };
                at_least = at_least.max(*since);
                match &watch.target {
                    Target::Key(key) => keys.push((id, key.clone())),
                    Target::Children(key) => self.reads.push(self.read_children(id, key.clone(), *since)),
                }
            }
            if !keys.is_empty() {
                self.reads.push(self.read_keys(keys, at_least));
            }
        }
    }

    fn read_call(&self, at_least: u64) -> Call {
        Call {
            start: self.pool.env.now(),
            limit: READ_WITHIN,
            repeat: Repeat::Freely,
            at_least: at_least.max(self.pool.seen()),
        }
    }

    fn read_children(&self, id: i64, key: Key, since: u64) -> Pin<Box<dyn Future<Output = States> + Send>> {
        let (pool, space, call) = (self.pool.clone(), self.space.clone(), self.read_call(since));
        Box::pin(async move {
            match listing::children(&pool, &space, &key, call).await {
                Ok((entries, revision)) => Ok((vec![(id, entries)], revision)),
                Err(failure) => Err((vec![id], failure)),
            }
        })
    }

    fn read_keys(&self, watches: Vec<(i64, Key)>, since: u64) -> Pin<Box<dyn Future<Output = States> + Send>> {
        let (pool, space, call) = (self.pool.clone(), self.space.clone(), self.read_call(since));
        Box::pin(async move {
            let (ids, keys): (Vec<i64>, Vec<Key>) = watches.into_iter().unzip();
            match get_many(&pool, &space, &keys, call).await {
                Ok((entries, revision)) => {
                    let states = entries.into_iter().map(|entry| entry.into_iter().collect());
                    Ok((ids.into_iter().zip(states).collect(), revision))
                }
                Err(failure) => Err((ids, failure)),
            }
        })
    }

    fn states(&mut self, states: States) {
        match states {
            Ok((states, revision)) => {
                for (id, entries) in states {
                    if let Some(watch) = self.watches.get_mut(&id) {
                        watch.state(entries, revision);
                    }
                }
            }
            Err((ids, failure)) => {
                tracing::debug!(?failure, "a watch's state could not be read");
                self.read_after = self.pool.env.now() + FIRST_PAUSE;
                for id in ids {
                    if failure.is_transient() {
                        self.to_read.insert(id);
                    } else {
                        self.refuse(id, failure.clone());
                    }
                }
            }
        }
    }

    fn lose_stream(&mut self, silent: bool) {
        if let Some(stream) = self.stream.take() {
            stream.give_up(&self.pool, silent);
        }
        self.drop_stream();
    }

    fn drop_stream(&mut self) {
        self.stream = None;
        self.asked.clear();
        self.to_read.clear();
        // What they would tell is older than the next stream.
        self.reads = FuturesUnordered::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EtcdConfig;
    use coord_api::Env;
    use coord_api::driver::mailbox;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn states_are_read_a_few_at_a_time() {
        let space = Keyspace::new(&Key::root());
        let pool = Pool::open(&EtcdConfig::new(["127.0.0.1:1"]), Env::system(), &space).unwrap();
        let (_commands, inbox) = mpsc::unbounded_channel();
        let mut actor = Actor::new(pool, space, inbox);
        let mut readers = Vec::new();
        for (id, ticket) in (2..1002).zip(0..) {
            let key = Key::new(format!("/dir/{id}")).unwrap();
            let target = match id % 2 {
                0 => Target::Children(key),
                _ => Target::Key(key),
            };
            let ((sender, watch), (ready, told)) = (mailbox(|| {}), oneshot::channel());
            let mut subscription = Subscription::new(target, sender, ready, ticket);
            subscription.phase = Phase::Reading(1, BTreeMap::new());
            actor.watches.insert(id, subscription);
            actor.to_read.insert(id);
            readers.push((watch, told));
        }
        actor.start_reads();
        assert!((1..=READS + 1).contains(&actor.reads.len()), "{}", actor.reads.len());
        assert!(actor.to_read.len() > 900);
    }
}
