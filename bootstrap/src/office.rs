//! The leader's entry: sought, held, given back.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Backoff, Coordinator, Election, ElectionConfig, Env, Instant, Key, Leadership, Observation, Observer, Recipe,
    Result, Session, SessionConfig, Strategy, Task,
};
use coord_cluster::{Address, NodeId};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Config;

/// What holding the leader's entry needs: a lease of its own, so that nobody but the holder costs the store a renewal.
pub(crate) struct Desk {
    session: Session,
    election: Arc<Election>,
    name: String,
}

/// On the way to the leader's entry: it is created as soon as nobody holds it.
pub(crate) struct Seeking {
    desk: Desk,
    campaign: BoxFuture<'static, Result<Leadership>>,
    observer: Observer,
    /// The holder that was seen last, and since when.
    holder: Option<(u64, String, Instant)>,
    /// The holder that was called a rival.
    rival: Option<u64>,
    /// When to look whether the holder's part of the cluster and the own one know each other.
    meet_at: Option<Instant>,
}

/// Holding the leader's entry, as long as the leadership is valid.
pub(crate) struct Held {
    desk: Desk,
    pub(crate) leadership: Box<Leadership>,
    /// Whether the record was seen to be the own one since the entry is held.
    pub(crate) verified: bool,
}

// === impl Desk ===

impl Desk {
    fn open(coordinator: &Arc<dyn Coordinator>, config: &Config, key: &Key, node: &NodeId) -> Result<Desk> {
        let backoff = Backoff {
            strategy: Strategy::Exponential {
                first: config.wait_first,
                factor: 2.0,
                max: config.wait_max,
            },
            ..Backoff::default()
        };
        let name = node.to_string();
        let session = SessionConfig {
            name: name.clone(),
            ttl: config.ttl,
            backoff,
        };
        let session = Session::open(coordinator.clone(), session)?;
        let election = ElectionConfig {
            recipe: Recipe::Cas,
            ..ElectionConfig::new(key.clone(), &name)
        };
        Ok(Desk {
            election: Arc::new(Election::new(&session, election)),
            session,
            name,
        })
    }

    /// Gives everything back, in a task that ends by itself: at the latest when the lease has ended.
    fn close(self, env: &Env, leadership: Option<Leadership>) -> Task {
        env.spawn(async move {
            if let Some(leadership) = leadership {
                // If it fails the entry ends with its lease.
                let _ = leadership.resign().await;
            }
            self.election.close().await;
            let _ = self.session.close().await;
        })
    }
}

// === impl Seeking ===

impl Seeking {
    pub(crate) fn start(
        coordinator: &Arc<dyn Coordinator>,
        config: &Config,
        key: &Key,
        node: &NodeId,
    ) -> Result<Seeking> {
        let desk = Desk::open(coordinator, config, key, node)?;
        let election = desk.election.clone();
        Ok(Seeking {
            observer: desk.election.observe(),
            desk,
            campaign: async move { election.campaign().await }.boxed(),
            holder: None,
            rival: None,
            meet_at: None,
        })
    }

    /// Resolves when the entry is held, or the campaign failed for good, or (`None`) somebody else was seen to hold it.
    pub(crate) async fn progress(&mut self, env: &Env) -> Option<Result<Leadership>> {
        loop {
            tokio::select! {
                biased;
                outcome = &mut self.campaign => return Some(outcome),
                Some(seen) = self.observer.changed() => match seen {
                    Observation::Leader(leader) if leader.name != self.desk.name => {
                        if self.holder.as_ref().is_none_or(|(token, ..)| *token != leader.token) {
                            self.holder = Some((leader.token, leader.name, env.now()));
                            self.meet_at = Some(env.now() + self.desk.session.config().ttl);
                            return None;
                        }
                    }
                    _ => (self.holder, self.meet_at) = (None, None),
                },
            }
        }
    }

    pub(crate) fn elected(self, leadership: Leadership) -> Held {
        Held {
            desk: self.desk,
            leadership: Box::new(leadership),
            verified: false,
        }
    }

    /// Another node that has held the entry for longer than an orderly change of hands takes; told once.
    pub(crate) fn rival(&mut self, patience: Duration, now: Instant) -> Option<String> {
        let (token, name, since) = self.holder.as_ref()?;
        if self.rival == Some(*token) || now < *since + patience {
            return None;
        }
        self.rival = Some(*token);
        Some(name.clone())
    }

    /// When the holder becomes a rival.
    pub(crate) fn rival_due(&self, patience: Duration) -> Option<Instant> {
        let (token, _, since) = self.holder.as_ref()?;
        (self.rival != Some(*token)).then(|| *since + patience)
    }

    /// When to look whether the parts of the holder and of this node know each other.
    pub(crate) fn meet_at(&self) -> Option<Instant> {
        self.meet_at
    }

    /// Looked; again after a ttl.
    pub(crate) fn met(&mut self, now: Instant) {
        self.meet_at = self.meet_at.map(|_| now + self.desk.session.config().ttl);
    }

    /// The address of the holder, if it is a node.
    pub(crate) fn holder(&self) -> Option<Address> {
        let (_, name, _) = self.holder.as_ref()?;
        name.rsplit_once('#')?.0.parse().ok()
    }

    /// Whether somebody else was seen to hold the entry.
    pub(crate) fn is_taken(&self) -> bool {
        self.holder.is_some()
    }

    pub(crate) fn give_up(self, env: &Env) -> Task {
        let Seeking { desk, campaign, .. } = self;
        drop(campaign);
        desk.close(env, None)
    }
}

// === impl Held ===

impl Held {
    pub(crate) fn is_valid(&self) -> bool {
        let term = self.leadership.term();
        term.is_valid() && !term.is_stopped()
    }

    /// The coordinator with calls that end while the entry is surely held; `None` when it is not.
    pub(crate) fn store(&self, coordinator: &Arc<dyn Coordinator>) -> Option<Arc<dyn Coordinator>> {
        let left = self.leadership.stop_at() - coordinator.env().now();
        (self.is_valid() && !left.is_zero()).then(|| coordinator.within(left))
    }

    /// The same, with calls that end by the deadline, too; `None` also when that is over.
    pub(crate) fn store_until(
        &self,
        coordinator: &Arc<dyn Coordinator>,
        deadline: Instant,
    ) -> Option<Arc<dyn Coordinator>> {
        let now = coordinator.env().now();
        let left = self.leadership.stop_at().min(deadline) - now;
        (self.is_valid() && !left.is_zero()).then(|| coordinator.within(left))
    }

    pub(crate) fn release(self, env: &Env) -> Task {
        self.desk.close(env, Some(*self.leadership))
    }
}
