use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Core;
use crate::{DetectorConfig, Message, NodeId, PhiAccrual};

/// The failure detectors of the few nodes that this one watches.
pub(super) struct Monitor {
    config: DetectorConfig,
    watches: BTreeMap<NodeId, Watch>,
    /// The earliest deadline of an unsuspected node, kept because it is asked for after every message.
    earliest: Duration,
}

struct Watch {
    detector: PhiAccrual,
    deadline: Duration,
    suspected: bool,
}

impl Monitor {
    pub(super) fn new(config: DetectorConfig) -> Self {
        Self {
            config,
            watches: BTreeMap::new(),
            earliest: Duration::MAX,
        }
    }

    pub(super) fn next_deadline(&self) -> Duration {
        self.earliest
    }

    pub(super) fn clear(&mut self) {
        self.watches.clear();
        self.earliest = Duration::MAX;
    }

    pub(super) fn suspects(&self) -> BTreeSet<NodeId> {
        self.watches
            .iter()
            .filter(|(_, watch)| watch.suspected)
            .map(|(node, _)| node.clone())
            .collect()
    }

    /// Watches exactly `targets`, and goes on watching those under suspicion as long as they are `members`, so that a
    /// change of the ring does not make a dead node look alive.
    fn retarget(&mut self, targets: &BTreeSet<NodeId>, is_member: impl Fn(&NodeId) -> bool, now: Duration) {
        self.watches
            .retain(|node, watch| targets.contains(node) || (watch.suspected && is_member(node)));
        for target in targets {
            if !self.watches.contains_key(target) {
                let detector = PhiAccrual::new(&self.config, now);
                let deadline = detector.deadline();
                self.watches.insert(
                    target.clone(),
                    Watch {
                        detector,
                        deadline,
                        suspected: false,
                    },
                );
            }
        }
        self.refresh_earliest();
    }

    /// Suspects whoever has been silent for too long; says whether that is news.
    pub(super) fn check(&mut self, now: Duration) -> bool {
        if now < self.earliest {
            return false;
        }
        let mut changed = false;
        for watch in self
            .watches
            .values_mut()
            .filter(|watch| !watch.suspected && now >= watch.deadline)
        {
            watch.suspected = true;
            changed = true;
        }
        self.refresh_earliest();
        changed
    }

    /// An answer came; says whether it ends a suspicion.
    fn answered(&mut self, node: &NodeId, now: Duration) -> bool {
        let Some(watch) = self.watches.get_mut(node) else {
            return false;
        };
        watch.detector.heartbeat(now);
        watch.deadline = watch.detector.deadline();
        let cleared = std::mem::take(&mut watch.suspected);
        self.refresh_earliest();
        cleared
    }

    /// Gossip came: a sign of life, but no proof that the node can be reached from here.
    pub(super) fn sign_of_life(&mut self, node: &NodeId, now: Duration) {
        if let Some(watch) = self.watches.get_mut(node).filter(|watch| !watch.suspected) {
            watch.detector.sign_of_life(now);
            watch.deadline = watch.detector.deadline();
            self.refresh_earliest();
        }
    }

    pub(super) fn forgive(&mut self, pause: Duration) {
        for watch in self.watches.values_mut() {
            watch.detector.forgive(pause);
            watch.deadline = watch.detector.deadline();
        }
        self.refresh_earliest();
    }

    fn refresh_earliest(&mut self) {
        let waiting = self.watches.values().filter(|watch| !watch.suspected);
        self.earliest = waiting.map(|watch| watch.deadline).min().unwrap_or(Duration::MAX);
    }
}

impl Core {
    pub(super) fn ping_watched(&mut self) {
        let watched: Vec<NodeId> = self.monitor.watches.keys().cloned().collect();
        for node in watched {
            self.send(node.address, Message::Ping { whom: node.incarnation });
        }
    }

    pub(super) fn receive_pong(&mut self, from: &NodeId, now: Duration) {
        if self.monitor.answered(from, now) {
            self.publish_suspects(now);
        }
    }

    pub(super) fn publish_suspects(&mut self, now: Duration) {
        let (me, suspects) = (self.me.clone(), self.monitor.suspects());
        self.update(now, |state| {
            let published = state.reachability().get(&me).map(|row| &row.suspects);
            if published.map_or(!suspects.is_empty(), |published| *published != suspects) {
                state.set_suspects(&me, suspects);
            }
        });
    }

    /// Follows the ring after the members changed.
    pub(super) fn watch_successors(&mut self, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        let members = gossip.state().members();
        let watched = gossip.snapshot.derived().watched_by(self.key);
        let targets: BTreeSet<NodeId> = watched.map(|index| members[index].node.clone()).collect();
        let state = gossip.state();
        self.monitor
            .retarget(&targets, |node| state.member(node).is_some(), now);
    }
}
