//! The writes of the manager, each under the leader's entry, and the way out.

use std::time::Duration;

use coord_api::{CoordinatorExt, Entry, ErrorKind, Expect, Instant};
use coord_cluster::{Address, ClusterView, NodeId, Phase};

use crate::office::{Held, Seeking};
use crate::run::{Runner, overdue};
use crate::seed::{Change, Seed, contacts, name, plan};
use crate::{End, Event, Reason, Record, State};

/// The part of the time for leaving that is kept for what comes after the cluster has been left.
const KEPT: f64 = 0.3;

impl Runner {
    /// Whether the record names the own cluster; puts it back when it is gone. Read after the leader's entry was
    /// acquired: nobody can have replaced it since.
    pub(crate) async fn verify(&mut self, held: &Held, own: Record) -> Result<bool, Reason> {
        let Some(store) = held.store(&self.coordinator) else {
            return Err(Reason::LeaderElsewhere);
        };
        match store.get_latest(&self.keys.record).await {
            Ok(Some(entry)) => {
                self.answered();
                match Record::parse(&entry.value) {
                    Some(record) => Ok(record.cluster == own.cluster),
                    None => Err(Reason::UnreadableRecord),
                }
            }
            Ok(None) => {
                self.answered();
                self.restore_record(held, own).await.map(|()| true)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Makes the seeds equal to the truth; what changed meanwhile is looked at again later.
    pub(crate) async fn keep_seeds(&mut self, held: &Held, view: &ClusterView) -> Result<(), Reason> {
        let actual = match self.store(held)?.children(&self.keys.seeds).await {
            Ok(actual) => actual,
            Err(error) => return Err(self.failed(&error)),
        };
        let changes = plan(view, self.config.max_seeds, &self.keys.seeds, &actual);
        let mut advertised = advertised(&actual);
        for change in &changes {
            let now = self.cluster.view();
            if (&now.self_node, now.cluster) != (&view.self_node, view.cluster) {
                // Expelled a moment ago: the seeds are no longer this node's business.
                return Err(Reason::LeaderElsewhere);
            }
            let store = self.store(held)?;
            let written = match change {
                Change::Add(key, seed) => store.create_persistent(key, seed.value()).await.map(drop),
                Change::Replace(entry, seed) => {
                    let expected = Expect::Version(entry.version);
                    store.update(&entry.key, seed.value(), expected).await.map(drop)
                }
                Change::Remove(entry) => store.delete(&entry.key, Expect::Version(entry.version)).await,
            };
            match written {
                Ok(()) => metrics::counter!("coord_bootstrap_seed_writes_total").increment(1),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotEmpty) => {
                    // Something foreign keeps something below it: it names nobody, and must not hold up the rest.
                    tracing::warn!("not removed from the seeds: {error}");
                    continue;
                }
                Err(error) if is_race(error.kind()) => return Err(Reason::LeaderElsewhere),
                Err(error) => return Err(self.failed(&error)),
            }
            match change {
                Change::Add(_, seed) => advertised.push(seed.node.address.clone()),
                Change::Replace(_, seed) => {
                    advertised.retain(|address| *address != seed.node.address);
                    advertised.push(seed.node.address.clone());
                }
                Change::Remove(entry) => {
                    if let Some(seed) = Seed::parse(&entry.value) {
                        advertised.retain(|address| *address != seed.node.address);
                    }
                }
            }
        }
        self.answered();
        advertised.sort();
        metrics::gauge!("coord_bootstrap_seeds").set(advertised.len() as f64);
        if !changes.is_empty() {
            self.shared.tell(Event::Seeds { advertised });
        }
        Ok(())
    }

    /// Somebody else holds the leader's entry, and it should be this node's turn: perhaps its part of the cluster and this one
    /// have removed each other and would never meet again.
    pub(crate) async fn meet_strangers(&mut self, record: Record, view: &ClusterView, holder: Option<Address>) {
        let me = &view.self_node.address;
        let seeds = self.coordinator.children(&self.keys.seeds).await.unwrap_or_default();
        let mut strangers = contacts(&seeds, record.cluster, me);
        strangers.extend(holder.filter(|holder| holder != me));
        let knows = |address: &Address| {
            let mut members = view.members.iter();
            members.any(|member| member.node.address == *address && member.reachable)
        };
        strangers.retain(|address| !knows(address));
        for stranger in strangers {
            // A node that has stopped is found out at the next look.
            let _ = self.cluster.meet(&stranger).await;
        }
    }

    fn store(&self, held: &Held) -> Result<std::sync::Arc<dyn coord_api::Coordinator>, Reason> {
        held.store(&self.coordinator).ok_or(Reason::LeaderElsewhere)
    }

    /// Leaves, in an order in which no newcomer is misled: first this node is no contact any more, then it is no member,
    /// then (the last one) there is no cluster, then nobody is in the way of the next one.
    pub(crate) async fn depart(&mut self, deadline: Instant, place: Option<(Record, Option<Box<Held>>)>) -> End {
        self.shared.set(State::Leaving);
        let (leave, env) = (self.leave.clone(), self.env.clone());
        let mut graceful = false;
        tokio::select! {
            biased;
            end = self.depart_by(deadline, place, &mut graceful) => return end,
            // Asked again, with less patience than before.
            () = overdue(leave, &env) => {}
        }
        // It is told, and stops by itself.
        let _ = env.timeout_at(env.now(), self.cluster.leave(Duration::ZERO)).await;
        End::Left { graceful }
    }

    async fn depart_by(
        &mut self,
        deadline: Instant,
        place: Option<(Record, Option<Box<Held>>)>,
        graceful: &mut bool,
    ) -> End {
        let env = self.env.clone();
        let (record, mut held) = match place {
            Some((record, held)) => (Some(record), held),
            None => (None, None),
        };
        let me = self.cluster.view().self_node;
        if let (Some(record), Some(held)) = (record, &held)
            && held.verified
        {
            let left = deadline - env.now();
            let removal = self.withdraw(held, record, &me);
            env.timeout_at(deadline - left.mul_f64(KEPT * 2.0), removal).await;
        }
        if self.cluster.view().phase == Phase::Stopped {
            return End::NodeStopped;
        }
        let within = (deadline - env.now()).mul_f64(1.0 - KEPT);
        let left = env.timeout_at(deadline, self.cluster.leave(within)).await;
        let departed = left.and_then(Result::ok);
        *graceful = departed.is_some_and(|departed| departed.graceful);
        if let Some(record) = record.filter(|_| departed.is_some_and(|departed| departed.last)) {
            env.timeout_at(deadline, self.clear(record, &me, &mut held)).await;
        }
        if let Some(held) = held {
            let release = held.release(&self.env);
            self.retire(release);
        }
        env.timeout_at(deadline, self.retired()).await;
        End::Left { graceful: *graceful }
    }

    /// Removes the own seed entry.
    async fn withdraw(&self, held: &Held, record: Record, me: &NodeId) {
        let Ok(key) = self.keys.seeds.child(name(&me.address)) else {
            return;
        };
        let Some(store) = held.store(&self.coordinator) else {
            return;
        };
        let own = Seed {
            node: me.clone(),
            cluster: record.cluster,
        };
        if let Ok(Some(entry)) = store.get(&key).await
            && Seed::parse(&entry.value) == Some(own)
            && let Err(error) = store.delete(&key, Expect::Version(entry.version)).await
        {
            tracing::debug!("own seed entry left behind: {error}");
        }
    }

    /// The last one: removes what is left of the cluster, the record at the very end.
    async fn clear(&mut self, record: Record, me: &NodeId, held: &mut Option<Box<Held>>) {
        if held.as_ref().is_none_or(|held| !held.is_valid()) {
            if let Some(old) = held.take() {
                let release = old.release(&self.env);
                self.retire(release);
            }
            *held = self.acquire(record, me).await.map(Box::new);
        }
        let Some(held) = held.as_ref() else { return };
        let Some(store) = held.store(&self.coordinator) else {
            return;
        };
        let Ok(Some(entry)) = store.get_latest(&self.keys.record).await else {
            return;
        };
        if Record::parse(&entry.value) != Some(record) {
            return;
        }
        for seed in store.children(&self.keys.seeds).await.unwrap_or_default() {
            if held.is_valid() && is_seed_of(&seed, record) {
                // What is left is stale by its own word: it names a cluster that is not on record.
                let _ = store.delete(&seed.key, Expect::Version(seed.version)).await;
            }
        }
        if held.is_valid()
            && let Err(error) = store.delete(&self.keys.record, Expect::Version(entry.version)).await
        {
            tracing::warn!("the record of the cluster that is no more stays: {error}");
        }
    }

    /// The leader's entry, as soon as nobody holds it; not if there is nothing left to remove, because another one that took
    /// itself for the last was quicker.
    async fn acquire(&mut self, record: Record, me: &NodeId) -> Option<Held> {
        let mut seeking = Seeking::start(&self.coordinator, &self.config, &self.keys.leader, me).ok()?;
        while self.may_be_recorded(record).await {
            match seeking.progress(&self.env).await {
                // Another holder: perhaps it has formed the next cluster.
                None => {}
                Some(Ok(leadership)) => return Some(seeking.elected(leadership)),
                Some(Err(_)) => break,
            }
        }
        self.give_up(seeking);
        None
    }

    async fn may_be_recorded(&self, record: Record) -> bool {
        match self.coordinator.get_latest(&self.keys.record).await {
            Ok(entry) => entry.is_some_and(|entry| Record::parse(&entry.value) == Some(record)),
            Err(_) => true,
        }
    }
}

fn is_race(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::AlreadyExists(_) | ErrorKind::VersionMismatch(_))
}

fn is_seed_of(entry: &Entry, record: Record) -> bool {
    Seed::parse(&entry.value).is_none_or(|seed| seed.cluster == record.cluster)
}

fn advertised(entries: &[Entry]) -> Vec<Address> {
    entries
        .iter()
        .filter_map(|entry| Seed::parse(&entry.value))
        .map(|seed| seed.node.address)
        .collect()
}
