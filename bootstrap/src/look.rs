//! Looking for a cluster, joining it, and being elected when there is none.

use coord_api::{Create, CreateMode, Entry, Error, ErrorKind, Expect, Instant, Result, Version};
use coord_cluster::{Address, ClusterView, Phase};

use crate::office::{Held, Seeking};
use crate::run::{Runner, asked, overdue};
use crate::seed::contacts;
use crate::vigil::Vigil;
use crate::{NotLetIn, Reason, Record, Reform, State};

/// In a cluster, and by whom this node was let in; or no cluster to join, and which record may be replaced.
type Looked = Result<(Record, Option<Address>), Option<(Record, Version)>>;

/// The part of the time for forming that is kept for taking back a record of which nobody knows whether it was written.
const KEPT: f64 = 0.25;

impl Runner {
    pub(crate) async fn look(&mut self) -> Result<Looked, Reason> {
        let attempt = self.attempt;
        self.shared.set(State::Looking { attempt });
        let Some((record, version)) = self.read_record().await? else {
            self.vigil = None;
            self.forget_other_cluster(None).await?;
            return if self.config.join_only {
                Err(Reason::NothingToJoin)
            } else {
                Ok(Err(None))
            };
        };
        if self.forget_other_cluster(Some(record)).await? {
            return Ok(Ok((record, None)));
        }
        let children = self.coordinator.children(&self.keys.seeds).await;
        let seeds = self.told(children)?;
        let me = self.cluster.view().self_node.address;
        let mut contacts = contacts(&seeds, record.cluster, &me);
        // Not everybody at the same door.
        let doors = contacts.len().max(1);
        contacts.rotate_left(self.env.random_u64() as usize % doors);
        let mut lives = false;
        for seed in contacts {
            match self.ask(record, &seed).await {
                Ok(()) => return Ok(Ok((record, Some(seed)))),
                Err(why) => lives |= why == NotLetIn::ByTheCluster,
            }
        }
        if is_in(&self.cluster.view(), record) {
            // The answer to an attempt that had been given up.
            return Ok(Ok((record, None)));
        }
        if lives {
            self.vigil = None;
            return Err(Reason::Refused);
        }
        self.keep_vigil(record, version).await
    }

    /// One seed, one deadline.
    async fn ask(&mut self, record: Record, seed: &Address) -> Result<(), NotLetIn> {
        self.shared.set(State::Joining {
            attempt: self.attempt,
            seed: seed.clone(),
        });
        let deadline = self.env.now() + self.config.join_timeout;
        let asked = self.env.timeout_at(deadline, self.cluster.join(record.cluster, seed));
        let answer = asked.await.unwrap_or(Err(NotLetIn::NoAnswer));
        if let Err(why) = &answer {
            tracing::debug!(%seed, "not let in: {why}");
        }
        answer
    }

    /// Whether nothing has been heard of the recorded cluster for so long that it may be formed anew.
    async fn keep_vigil(&mut self, record: Record, version: Version) -> Result<Looked, Reason> {
        let leader = self.coordinator.get(&self.keys.leader).await;
        if self.told(leader)?.is_some() {
            self.vigil = None;
            return Err(Reason::LeaderElsewhere);
        }
        let Reform::After(patience) = self.config.reform else {
            return Err(Reason::NoSeedAnswers);
        };
        if self.config.join_only {
            return Err(Reason::NoSeedAnswers);
        }
        let now = self.env.now();
        let so_far = match &mut self.vigil {
            Some(vigil) => vigil.lasts(version, now).then(|| vigil.so_far(now)),
            None => None,
        };
        match so_far {
            Some(so_far) if so_far >= patience => return Ok(Err(Some((record, version)))),
            Some(_) => {}
            None => self.vigil = Vigil::begin(&self.coordinator, &self.keys.leader, version).await,
        }
        Err(Reason::NoSeedAnswers)
    }

    async fn read_record(&mut self) -> Result<Option<(Record, Version)>, Reason> {
        let entry = self.coordinator.get(&self.keys.record).await;
        match self.told(entry)? {
            None => Ok(None),
            Some(entry) => match Record::parse(&entry.value) {
                Some(record) => Ok(Some((record, entry.version))),
                None => Err(Reason::UnreadableRecord),
            },
        }
    }

    /// What the store said; an outage ends a vigil, because nobody knows what happens meanwhile.
    fn told<T>(&mut self, answer: Result<T>) -> Result<T, Reason> {
        match answer {
            Ok(answer) => {
                self.answered();
                Ok(answer)
            }
            Err(error) => {
                self.vigil = None;
                Err(self.failed(&error))
            }
        }
    }

    /// Leaves whatever cluster this node is in, unless it is the recorded one: then `true`.
    pub(crate) async fn forget_other_cluster(&mut self, record: Option<Record>) -> Result<bool, Reason> {
        let view = self.cluster.view();
        if view.phase != Phase::Member {
            return Ok(false);
        }
        if record.is_some_and(|record| is_in(&view, record)) {
            return Ok(true);
        }
        // A node that has stopped is found out by the next attempt.
        let _ = self.cluster.reset().await;
        Ok(false)
    }

    /// Stands for election and forms the cluster: the first one, or the one after the record that was given.
    pub(crate) async fn elect(&mut self, quiet: Option<(Record, Version)>) -> Result<(Record, Held), Reason> {
        let attempt = self.attempt;
        self.shared.set(State::Electing { attempt });
        let leader = self.coordinator.get(&self.keys.leader).await;
        if self.told(leader)?.is_some() {
            self.vigil = None;
            return Err(Reason::LeaderElsewhere);
        }
        // From here on, this node is itself what happens to the leader's entry.
        self.vigil = None;
        let mut held = self.win().await?;
        self.shared.set(State::Forming { attempt });
        // Whoever waits for this entry's end waits no longer than for that of a winner that died.
        let deadline = self.env.now() + self.config.ttl;
        let (leave, env) = (self.leave.clone(), self.env.clone());
        let recorded = tokio::select! {
            biased;
            recorded = self.record(&held, quiet, deadline) => recorded,
            () = overdue(leave, &env) => Err(Reason::OutOfTime),
        };
        match recorded {
            // Should this process have stood still meanwhile, others may have given this cluster up already.
            Ok(record) if held.is_valid() => {
                let _ = self.cluster.form(record.cluster).await;
                held.verified = true;
                Ok((record, held))
            }
            recorded => {
                let release = held.release(&self.env);
                self.retire(release);
                Err(recorded.err().unwrap_or(Reason::OutOfTime))
            }
        }
    }

    /// Creates the leader's entry if nobody holds it.
    async fn win(&mut self) -> Result<Held, Reason> {
        let me = self.cluster.view().self_node;
        let seeking = Seeking::start(&self.coordinator, &self.config, &self.keys.leader, &me);
        let mut seeking = seeking.map_err(|error| self.failed(&error))?;
        let deadline = self.env.now() + self.config.ttl;
        let mut leave = self.leave.clone();
        let progress = tokio::select! {
            biased;
            progress = self.env.timeout_at(deadline, seeking.progress(&self.env)) => progress,
            // The wait that follows sees to it.
            _ = asked(&mut leave) => None,
        };
        let reason = match progress {
            Some(Some(Ok(leadership))) => return Ok(seeking.elected(leadership)),
            Some(Some(Err(error))) => self.failed(&error),
            _ if seeking.is_taken() => Reason::LeaderElsewhere,
            _ => Reason::Store("no lease could be had in time".into()),
        };
        self.give_up(seeking);
        Err(reason)
    }

    pub(crate) fn give_up(&mut self, seeking: Seeking) {
        let task = seeking.give_up(&self.env);
        self.retire(task);
    }

    /// Writes the record, under the leader's entry: nobody else does meanwhile.
    async fn record(
        &mut self,
        held: &Held,
        quiet: Option<(Record, Version)>,
        deadline: Instant,
    ) -> Result<Record, Reason> {
        let Some(store) = held.store_until(&self.coordinator, deadline) else {
            return Err(Reason::OutOfTime);
        };
        let found = store.get_latest(&self.keys.record).await;
        match (self.told(found)?, quiet) {
            (None, None) => {
                let record = Record::first(&self.env);
                let create = self.creation(record);
                let kept = self.config.ttl.mul_f64(KEPT);
                let created = self.create_record(held, &create, deadline - kept).await;
                if created.is_err()
                    && let Some(store) = held.store_until(&self.coordinator, deadline)
                {
                    // Nobody may find it there later. If this fails, too, or the entry is no longer held, a record
                    // without a cluster may be left: the next one is formed when the vigil is over.
                    let _ = store.abandon(&create).await;
                }
                created.map(|()| record)
            }
            (Some(entry), Some((old, version))) if entry.version == version => {
                let record = old.next(&self.env);
                self.replace_record(held, record, version, deadline).await?;
                Ok(record)
            }
            // Somebody was quicker, or the last one has left: look again.
            _ => Err(Reason::LeaderElsewhere),
        }
    }

    /// Puts the record of the own, living cluster back. If it is not known whether that was done, it stays as it is: it
    /// would be the right one.
    pub(crate) async fn restore_record(&mut self, held: &Held, record: Record) -> Result<(), Reason> {
        let create = self.creation(record);
        let deadline = self.env.now() + self.config.ttl;
        self.create_record(held, &create, deadline).await
    }

    fn creation(&self, record: Record) -> Create {
        let key = self.keys.record.clone();
        Create::new(&self.env, key, record.value(), CreateMode::Persistent)
    }

    /// One create, sent again as it is until its outcome is known, the time is over or the leader's entry is no longer
    /// surely held.
    async fn create_record(&mut self, held: &Held, create: &Create, deadline: Instant) -> Result<(), Reason> {
        let mut last = None;
        while let Some(store) = held.store_until(&self.coordinator, deadline) {
            match store.create(create).await {
                Ok(_) => return Ok(()),
                Err(error) if error.holder().is_some_and(|now| now.value == create.value) => return Ok(()),
                Err(error) if error.is_definite() => return Err(self.refused(error)),
                Err(error) => {
                    last = Some(self.failed(&error));
                    self.env
                        .sleep_until(deadline.min(self.env.now() + self.config.wait_first))
                        .await;
                }
            }
        }
        Err(last.unwrap_or(Reason::OutOfTime))
    }

    async fn replace_record(
        &mut self,
        held: &Held,
        record: Record,
        version: Version,
        deadline: Instant,
    ) -> Result<(), Reason> {
        let mut last = None;
        while let Some(store) = held.store_until(&self.coordinator, deadline) {
            let update = store.update(&self.keys.record, record.value(), Expect::Version(version));
            let error = match update.await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match store.get_latest(&self.keys.record).await {
                Ok(now) if is_own(now.as_ref(), record) => return Ok(()),
                Ok(Some(now)) if now.version == version => {}
                Ok(_) => return Err(Reason::LeaderElsewhere),
                Err(error) => last = Some(self.failed(&error)),
            }
            if error.is_definite() && !matches!(error.kind(), ErrorKind::VersionMismatch(_)) {
                return Err(self.refused(error));
            }
            self.env
                .sleep_until(deadline.min(self.env.now() + self.config.wait_first))
                .await;
        }
        Err(last.unwrap_or(Reason::OutOfTime))
    }

    fn refused(&mut self, error: Error) -> Reason {
        match error.kind() {
            ErrorKind::AlreadyExists(_) | ErrorKind::NotFound => Reason::LeaderElsewhere,
            _ => self.failed(&error),
        }
    }
}

fn is_own(entry: Option<&Entry>, record: Record) -> bool {
    entry.is_some_and(|entry| Record::parse(&entry.value) == Some(record))
}

fn is_in(view: &ClusterView, record: Record) -> bool {
    view.phase == Phase::Member && view.cluster == record.cluster
}
