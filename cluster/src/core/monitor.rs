use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Core;
use crate::{DetectorConfig, Message, NodeId, Phase, PhiAccrual};

/// The failure detectors of the few nodes that this one watches.
pub(super) struct Monitor {
    config: DetectorConfig,
    watches: BTreeMap<NodeId, Watch>,
    /// Where the last round of questions to suspects that are no longer due to be watched ended.
    asked: Option<NodeId>,
    /// The earliest deadline of an unsuspected node, kept because it is asked for after every message.
    earliest: Duration,
}

struct Watch {
    detector: PhiAccrual,
    deadline: Duration,
    suspected: bool,
    /// Whether the ring gives this node to watch; if not, it is only kept because it is under suspicion.
    due: bool,
}

/// How many suspects that the ring no longer gives are asked in one round: the heartbeats of a node that has lost
/// sight of everybody must not grow with the cluster.
const SUSPECTS_ASKED: usize = 5;

impl Monitor {
    pub(super) fn new(config: DetectorConfig) -> Self {
        Self {
            config,
            watches: BTreeMap::new(),
            asked: None,
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
        for (node, watch) in &mut self.watches {
            watch.due = targets.contains(node);
        }
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
                        due: true,
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

    /// Whom to ask in this round: all that are due, and some of the other suspects.
    fn round(&mut self) -> Vec<NodeId> {
        let due = self.watches.iter().filter(|(_, watch)| watch.due);
        let mut round: Vec<NodeId> = due.map(|(node, _)| node.clone()).collect();
        round.extend(self.next_suspects(SUSPECTS_ASKED));
        round
    }

    /// The next of those that are only kept because they are under suspicion, in turn.
    fn next_suspects(&mut self, count: usize) -> Vec<NodeId> {
        let kept = |from: &Option<NodeId>| {
            let later = |node: &NodeId| from.as_ref().is_none_or(|from| node > from);
            let kept = self
                .watches
                .iter()
                .filter(move |(node, watch)| !watch.due && later(node));
            kept.map(|(node, _)| node.clone()).take(count).collect::<Vec<_>>()
        };
        let mut next = kept(&self.asked);
        if next.len() < count {
            let start = kept(&None).into_iter().filter(|node| !next.contains(node));
            let start: Vec<NodeId> = start.take(count - next.len()).collect();
            next.extend(start);
        }
        self.asked = next.last().cloned();
        next
    }

    fn refresh_earliest(&mut self) {
        let waiting = self.watches.values().filter(|watch| !watch.suspected);
        self.earliest = waiting.map(|watch| watch.deadline).min().unwrap_or(Duration::MAX);
    }
}

impl Core {
    pub(super) fn ping_watched(&mut self) {
        let round = self.monitor.round();
        self.ping(round);
    }

    fn ping(&mut self, nodes: Vec<NodeId>) {
        for node in nodes {
            self.send(node.address, Message::Ping { whom: node.incarnation });
        }
    }

    pub(super) fn receive_pong(&mut self, from: &NodeId, now: Duration) {
        if self.monitor.answered(from, now) {
            self.publish_suspects(now);
            // Whoever was cut off finds the others again two by two, not in as many rounds as there are suspects.
            let next = self.monitor.next_suspects(2);
            self.ping(next);
        }
    }

    /// Speaks up where the word of one observer has decided and that one also suspects this node: an observer that is
    /// deaf suspects all whom it watches, and only they can tell that from being the last one left.
    pub(super) fn contradict(&mut self, now: Duration) {
        let Some(gossip) = self.gossip.as_ref().filter(|_| self.phase == Phase::Member) else {
            return;
        };
        let (state, sole) = (gossip.state(), &gossip.snapshot.derived().sole_voters);
        let voters = sole.iter().map(|index| state.members()[*index].node());
        let wrong = |voter: &&NodeId| {
            let row = state.reachability().get(voter);
            row.is_some_and(|row| row.suspects.contains(&self.me)) && !state.is_contradicted(&self.me, voter)
        };
        let wrong: Vec<NodeId> = voters.filter(wrong).cloned().collect();
        if !wrong.is_empty() {
            let me = self.me.clone();
            self.update(now, |state| {
                wrong.iter().for_each(|accuser| state.contradict(&me, accuser));
            });
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
