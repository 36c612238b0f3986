use std::cmp::Ordering;
use std::time::Duration;

use rand::RngExt;

use super::departure::ESTRANGED_FRESH;
use super::{Core, DropReason, Gossip, Origin};
use crate::message::{Envelope, Overview, SeenBy};
use crate::state::{SeenSet, Snapshot};
use crate::{Address, ClusterId, Event, MemberState, Message, NodeId, Phase};

/// How likely an extra message goes to a node that has not seen the own state.
const UNSEEN_CHANCE: f64 = 0.8;
/// How many such extra messages one node may get per round from all others together, on average.
const UNSEEN_CROWD: f64 = 4.0;
/// How many other clusters are remembered.
const MAX_FOREIGN: usize = 16;
/// How likely a round includes a look at an address that was put down, lately or long ago.
const ESTRANGED_CHANCE: f64 = 0.2;
const LONG_ESTRANGED_CHANCE: f64 = 0.02;

impl Core {
    /// One round after the document: a random live node, and sometimes an unreachable one, a deputy, and one with
    /// another version.
    pub(super) fn gossip_round(&mut self, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        let targets = pick_targets(gossip, &mut self.rng);
        let interval = if gossip.spread() {
            self.config.gossip_interval
        } else {
            self.config.fast_interval
        };
        self.next_gossip = now + interval.mul_f64(self.rng.random_range(0.9..1.1));
        for to in targets {
            self.send_overview(to, false);
        }
        self.visit_estranged(now);
    }

    fn visit_estranged(&mut self, now: Duration) {
        if self.estranged.is_empty() {
            return;
        }
        let nth = self.rng.random_range(0..self.estranged.len());
        let Some((to, since)) = self.estranged.iter().nth(nth).map(|(to, since)| (to.clone(), *since)) else {
            return;
        };
        let state = self.gossip.as_ref().map(Gossip::state);
        if state.is_some_and(|state| {
            state
                .incarnations_of(&to)
                .any(|member| member.state() < MemberState::Down)
        }) {
            self.estranged.remove(&to);
            return;
        }
        let fresh = now < since + ESTRANGED_FRESH;
        if self
            .rng
            .random_bool(if fresh { ESTRANGED_CHANCE } else { LONG_ESTRANGED_CHANCE })
        {
            self.send_overview(to, false);
        }
    }

    pub(super) fn receive(&mut self, envelope: Envelope, now: Duration) {
        let Envelope {
            from,
            to,
            cluster,
            message,
        } = envelope;
        if to != self.me.address || from.address == self.me.address {
            return self.drop_message(DropReason::Misdirected);
        }
        if self.phase == Phase::Stopped {
            // Whoever is told "not a member" takes this node for one that waits to become one.
            return self.drop_message(DropReason::Stray);
        }
        match message {
            Message::Join { expected } => return self.receive_join(&from, expected, now),
            Message::Identify => {
                let cluster = self.cluster();
                return self.send(from.address, Message::Identity { cluster });
            }
            Message::Welcome { snapshot } => return self.receive_welcome(&from, snapshot, now),
            Message::Refused(refusal) => return self.receive_refusal(&from, refusal, now),
            Message::Identity { cluster } => return self.receive_identity(&from, cluster, now),
            _ => {}
        }
        let Some(gossip) = &self.gossip else {
            return self.drop_message(DropReason::Stray);
        };
        if cluster != gossip.state().cluster() {
            return self.receive_foreign(from.address, cluster);
        }
        if let Message::Gone { known, strength } = message {
            return self.receive_gone(&from, known, &strength, now);
        }
        if matches!(
            gossip.state().state_of(&from),
            Some(MemberState::Down | MemberState::Removed)
        ) {
            self.send_gone(from.address);
            return self.drop_message(DropReason::DeadSender);
        }
        match message {
            Message::Ping { whom } if whom == self.me.incarnation => self.send(from.address, Message::Pong),
            Message::Ping { .. } => self.drop_message(DropReason::Misdirected),
            Message::Pong => self.receive_pong(&from, now),
            Message::Overview(overview) => self.receive_overview(&from, overview, now),
            Message::Request => self.send_state(from.address, false),
            Message::State { snapshot, seen, answer } => self.receive_state(from, &snapshot, &seen, answer, now),
            Message::Moved(successor) => self.update(now, |state| state.set_successor(successor)),
            // Handled above; listed so that a new message cannot be forgotten.
            Message::Join { .. }
            | Message::Identify
            | Message::Welcome { .. }
            | Message::Refused(_)
            | Message::Identity { .. }
            | Message::Gone { .. } => {}
        }
    }

    fn receive_foreign(&mut self, from: Address, cluster: ClusterId) {
        self.hear_of(cluster);
        match &self.moved {
            Some((old, successor)) if *old == cluster => {
                let message = Message::Moved(successor.clone());
                let me = self.me.clone();
                self.out.push(super::Output::Send(Envelope {
                    from: me,
                    to: from,
                    cluster,
                    message,
                }));
            }
            _ => {
                // So that it hears of this cluster as well.
                let cluster = self.cluster();
                self.send(from, Message::Identity { cluster });
                self.drop_message(DropReason::ForeignCluster);
            }
        }
    }

    /// Two clusters never mix, but each learns that there is another.
    pub(super) fn hear_of(&mut self, cluster: ClusterId) {
        let other = cluster != ClusterId::NONE && cluster != self.cluster();
        let room = self.foreign.len() < MAX_FOREIGN;
        if other && room && self.phase == Phase::Member && self.foreign.insert(cluster) {
            self.emit(Event::Foreign { cluster });
        }
    }

    fn receive_overview(&mut self, from: &NodeId, overview: Overview, now: Duration) {
        self.monitor.sign_of_life(from, now);
        let Some(gossip) = &mut self.gossip else { return };
        let Overview { digest, seen, clock } = overview;
        if digest == gossip.state().digest() {
            let members = gossip.state().members().len();
            let theirs = match seen {
                SeenBy::All => gossip.snapshot.derived().must_see.clone(),
                SeenBy::Some(seen) => seen,
            };
            gossip.seen.union(&theirs, members);
            if let Some(index) = gossip.state().index_of(from) {
                gossip.seen.insert(index);
            }
            let they_lack = !theirs.covers(&gossip.seen);
            if self.phase == Phase::Departing {
                return self.farewell_heard();
            }
            if they_lack {
                self.send_overview(from.address.clone(), false);
            }
            return;
        }
        match clock.map(|clock| gossip.state().version().causal_cmp(&clock)) {
            None => self.send_overview(from.address.clone(), true),
            Some(Some(Ordering::Less)) => self.send(from.address.clone(), Message::Request),
            Some(Some(Ordering::Greater)) => self.send_state(from.address.clone(), false),
            // Concurrent; or equal clocks with different content, which pruning can bring about.
            Some(None | Some(Ordering::Equal)) => self.send_state(from.address.clone(), true),
        }
    }

    fn receive_state(&mut self, from: NodeId, theirs: &Snapshot, seen: &SeenSet, answer: bool, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        if theirs.state().cluster() != gossip.state().cluster() {
            return self.drop_message(DropReason::ForeignCluster);
        }
        let merged = gossip.snapshot.merged(theirs);
        let digest = merged.state().digest();
        let (as_ours, as_theirs) = (digest == gossip.state().digest(), digest == theirs.state().digest());
        let mut union = if as_ours { gossip.seen.clone() } else { SeenSet::new() };
        if as_theirs {
            union.union(seen, merged.state().members().len());
        }
        self.adopt(merged, union, Origin::Remote, now);
        if self.phase != Phase::Member {
            return;
        }
        if as_theirs {
            // Tells the sender that one more has seen it.
            self.send_overview(from.address, false);
        } else if answer {
            self.send_state(from.address, false);
        }
    }

    pub(super) fn send_overview(&mut self, to: Address, with_clock: bool) {
        let Some(gossip) = &self.gossip else { return };
        let all = gossip.seen.covers(&gossip.snapshot.derived().must_see);
        let overview = Overview {
            digest: gossip.state().digest(),
            seen: if all {
                SeenBy::All
            } else {
                SeenBy::Some(gossip.seen.clone())
            },
            clock: (with_clock || !all).then(|| gossip.state().version().clone()),
        };
        self.send(to, Message::Overview(overview));
    }

    pub(super) fn send_state(&mut self, to: Address, answer: bool) {
        let Some(gossip) = &self.gossip else { return };
        let message = Message::State {
            snapshot: gossip.snapshot.clone(),
            seen: gossip.seen.clone(),
            answer,
        };
        self.send(to, message);
    }

    /// Up to `count` random live members other than this one.
    pub(super) fn random_live(&mut self, count: usize) -> Vec<Address> {
        let Some(gossip) = &self.gossip else { return Vec::new() };
        (0..count)
            .filter_map(|_| random_live(gossip, &mut self.rng))
            .map(|index| address(gossip, index))
            .collect()
    }
}

fn address(gossip: &Gossip, index: usize) -> Address {
    gossip.state().members()[index].node().address.clone()
}

fn random_live(gossip: &Gossip, rng: &mut impl rand::Rng) -> Option<usize> {
    let derived = gossip.snapshot.derived();
    let me = gossip.my_index;
    let others = derived.live_count - usize::from(derived.live.contains(me));
    if others == 0 {
        return None;
    }
    let mut without_me = SeenSet::new();
    without_me.insert(me);
    without_me.nth_missing(&derived.live, rng.random_range(0..others))
}

fn pick_targets(gossip: &Gossip, rng: &mut impl rand::Rng) -> Vec<Address> {
    let derived = gossip.snapshot.derived();
    let (live, unreachable) = (derived.live_count.saturating_sub(1), derived.unreachable.len());
    let mut targets = Vec::with_capacity(2);
    let first = random_live(gossip, rng);
    targets.extend(first);

    if unreachable > 0 && rng.random_bool(unreachable as f64 / (unreachable + live + 1) as f64) {
        targets.extend(derived.unreachable.iter().nth(rng.random_range(0..unreachable)));
    }

    let contacts = || {
        derived
            .leader
            .iter()
            .chain(&derived.deputies)
            .filter(|index| **index != gossip.my_index)
    };
    let deputies = contacts().count();
    let met_deputy = first.is_some_and(|first| contacts().any(|index| *index == first));
    if deputies > 0 && (!met_deputy || live < deputies) {
        let chance = deputies as f64 / (live + unreachable).max(deputies) as f64;
        if unreachable > 0 && rng.random_bool(chance) {
            targets.extend(contacts().nth(rng.random_range(0..deputies)));
        }
    }

    let unseen = gossip.seen.missing(&derived.live);
    if unseen > 0 && rng.random_bool(UNSEEN_CHANCE.min(UNSEEN_CROWD * unseen as f64 / (live + 1) as f64)) {
        targets.extend(gossip.seen.nth_missing(&derived.live, rng.random_range(0..unseen)));
    }
    targets.dedup();
    targets
        .into_iter()
        .filter(|index| *index != gossip.my_index)
        .map(|index| address(gossip, index))
        .collect()
}
