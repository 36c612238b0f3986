//! The writes of the manager, each under the leader's entry, and the way out.

use std::time::Duration;

use coord_api::{CoordinatorExt, Entry, ErrorKind, Expect};
use coord_cluster::{Address, ClusterView, NodeId, Phase};

use crate::office::{Held, Seeking};
use crate::run::Runner;
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
                self.create_record(held, own).await.map(|()| true)
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
    pub(crate) async fn depart(&mut self, within: Duration, place: Option<(Record, Option<Box<Held>>)>) -> End {
        self.shared.set(State::Leaving);
        let deadline = self.env.now() + within;
        let (record, mut held) = match place {
            Some((record, held)) => (Some(record), held),
            None => (None, None),
        };
        let me = self.cluster.view().self_node;
        if let (Some(record), Some(held)) = (record, &held)
            && held.verified
        {
            let removal = self.withdraw(held, record, &me);
            let kept = within.mul_f64(KEPT);
            self.env.timeout_at(deadline - kept * 2, removal).await;
        }
        if self.cluster.view().phase == Phase::Stopped {
            return End::NodeStopped;
        }
        let left = self
            .cluster
            .leave((deadline - self.env.now()).mul_f64(1.0 - KEPT))
            .await;
        let (graceful, last) = left.map_or((false, false), |departed| (departed.graceful, departed.last));
        if let Some(record) = record.filter(|_| last) {
            let env = self.env.clone();
            env.timeout_at(deadline, self.clear(record, &me, &mut held)).await;
        }
        if let Some(held) = held {
            let release = held.release(&self.env);
            self.retire(release);
        }
        let env = self.env.clone();
        env.timeout_at(deadline, self.retired()).await;
        End::Left { graceful }
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
            *held = self.acquire(me).await.map(Box::new);
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

    /// The leader's entry, as soon as nobody holds it.
    async fn acquire(&mut self, me: &NodeId) -> Option<Held> {
        let mut seeking = Seeking::start(&self.coordinator, &self.config, &self.keys.leader, me).ok()?;
        loop {
            match seeking.progress(&self.env).await {
                None => {}
                Some(Ok(leadership)) => return Some(seeking.elected(leadership)),
                Some(Err(_)) => {
                    self.give_up(seeking);
                    return None;
                }
            }
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
