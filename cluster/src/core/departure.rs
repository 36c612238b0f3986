use std::time::Duration;

use super::{Core, DropReason, Gossip, Origin};
use crate::message::Strength;
use crate::state::{SeenSet, Snapshot};
use crate::{Address, Event, Incarnation, MemberState, Message, NodeId, Phase};

/// For how long an address that was put down is looked for often; after that now and then, but for ever: a partition
/// may last for days.
pub(super) const ESTRANGED_FRESH: Duration = Duration::from_secs(3600);
/// How many such addresses are remembered.
const MAX_ESTRANGED: usize = 128;
/// How often, and to how many, a node tells of its own removal.
const FAREWELL_ROUNDS: u32 = 6;
const FAREWELL_FANOUT: usize = 3;
/// How long a node that was told to leave by another waits for its exit.
const LEAVE_WITHIN: Duration = Duration::from_secs(30);

/// The last rounds of a node that has decided on its own removal.
#[derive(Default)]
pub(super) struct Departure {
    graceful: bool,
    rounds: u32,
}

impl Core {
    pub(super) fn leave(&mut self, node: Option<NodeId>, within: Duration, now: Duration) {
        let who = node.unwrap_or_else(|| self.me.clone());
        if who == self.me {
            match self.phase {
                Phase::Idle | Phase::Joining => return self.stop(true),
                Phase::Member => self.leave_by = Some(now.saturating_add(within)),
                Phase::Departing | Phase::Stopped => return,
            }
        }
        self.update(now, |state| {
            if state
                .member(&who)
                .is_some_and(|member| member.state() < MemberState::Leaving)
            {
                state.advance(&who, MemberState::Leaving);
            }
        });
    }

    /// Another node may have told this one to leave.
    pub(super) fn note_own_state(&mut self, state: MemberState, now: Duration) {
        if state >= MemberState::Leaving && self.leave_by.is_none() {
            self.leave_by = Some(now + LEAVE_WITHIN);
        }
    }

    /// Stops waiting for a graceful exit: says down about itself, so that the others need not find out.
    pub(super) fn tick_leave(&mut self, now: Duration) {
        if self.leave_by.is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.phase == Phase::Member {
            let me = self.me.clone();
            self.down(&[me], now);
        } else {
            self.stop(false);
        }
    }

    /// The new state says that this node is down or removed.
    pub(super) fn accept_fate(&mut self, snapshot: Snapshot, fate: Option<MemberState>, origin: Origin, now: Duration) {
        if self.phase == Phase::Departing {
            // It goes on saying farewell, with what it has just learned.
            let my_index = snapshot.state().members().len();
            self.gossip = Some(Gossip {
                snapshot,
                seen: SeenSet::new(),
                my_index,
            });
            return;
        }
        let removed = fate == Some(MemberState::Removed);
        let leaving = self.leave_by.is_some();
        if leaving && origin == Origin::Own {
            // The others have to hear it from this node, and this node is about to fall silent.
            let rounds = if snapshot.derived().live_count == 0 {
                0
            } else {
                FAREWELL_ROUNDS
            };
            self.departure = Departure {
                graceful: removed,
                rounds,
            };
            let my_index = snapshot.state().members().len();
            self.gossip = Some(Gossip {
                snapshot,
                seen: SeenSet::new(),
                my_index,
            });
            self.monitor.clear();
            self.attempt = None;
            self.phase = Phase::Departing;
            self.next_heartbeat = Duration::MAX;
            self.leave_by = None;
            self.next_gossip = now;
            return self.tick_farewell(now);
        }
        if leaving {
            return self.stop(removed);
        }
        let known = snapshot.state().latest_incarnation(&self.me.address);
        self.be_reborn(&snapshot, known, None, now);
    }

    pub(super) fn tick_farewell(&mut self, now: Duration) {
        if now < self.next_gossip {
            return;
        }
        if self.departure.rounds == 0 {
            let graceful = self.departure.graceful;
            return self.stop(graceful);
        }
        self.departure.rounds -= 1;
        self.next_gossip = now + self.config.fast_interval;
        for to in self.random_live(FAREWELL_FANOUT) {
            self.send_state(to, false);
        }
    }

    /// Somebody has heard of the departure.
    pub(super) fn farewell_heard(&mut self) {
        let graceful = self.departure.graceful;
        self.stop(graceful);
    }

    /// Ends this node for good.
    pub(super) fn stop(&mut self, graceful: bool) {
        if self.phase == Phase::Stopped {
            return;
        }
        let me = &self.me;
        let last = self.gossip.as_ref().is_some_and(|gossip| {
            let mut others = gossip.state().members().iter().filter(|member| member.node() != me);
            !others.any(|member| member.state() < MemberState::Down)
        });
        self.abandon_state();
        self.leave_by = None;
        self.phase = Phase::Stopped;
        self.emit(Event::Left { graceful, last });
    }

    /// Comes back as a new incarnation: the old one is down, and nothing can undo that.
    fn be_reborn(
        &mut self,
        snapshot: &Snapshot,
        known: Option<Incarnation>,
        messenger: Option<Address>,
        now: Duration,
    ) {
        let state = snapshot.state();
        let alive = |member: &&crate::Member| member.state() < MemberState::Down;
        let mut others: Vec<Address> = state
            .members()
            .iter()
            .filter(alive)
            .map(|member| member.node().address.clone())
            .collect();
        // Where each starts to ask differs, so that those who come back do not all knock on one door.
        let start = self.key.0 as usize % others.len().max(1);
        others.rotate_left(start);
        // The messenger is a member for sure. Those who are down here may be the ones who prevailed.
        let mut contacts: Vec<Address> = messenger.into_iter().chain(others).collect();
        contacts.extend(self.estranged.keys().cloned());
        let downed = state.members().iter().filter(|member| !alive(member));
        contacts.extend(downed.map(|member| member.node().address.clone()));
        let cluster = state.cluster();
        self.start_over(known.unwrap_or(self.me.incarnation).max(self.me.incarnation).next());
        if self.config.rejoin {
            self.rejoin(cluster, contacts, now);
        }
    }

    pub(super) fn reset(&mut self) {
        if !matches!(self.phase, Phase::Departing | Phase::Stopped) {
            self.start_over(self.me.incarnation.next());
        }
    }

    /// Another life of this address, in no cluster.
    fn start_over(&mut self, incarnation: Incarnation) {
        let old = self.me.clone();
        self.take_incarnation(incarnation);
        self.abandon_state();
        self.moved = None;
        self.leave_by = None;
        let new = self.me.clone();
        self.emit(Event::Reborn { old, new });
    }

    pub(super) fn take_incarnation(&mut self, incarnation: Incarnation) {
        self.me.incarnation = incarnation;
        self.key = self.me.key();
    }

    pub(super) fn send_gone(&mut self, to: Address) {
        let Some(strength) = self.strength() else { return };
        let Some(gossip) = &self.gossip else { return };
        let known = gossip.state().latest_incarnation(&to).unwrap_or(Incarnation(0));
        self.send(to, Message::Gone { known, strength });
    }

    fn strength(&self) -> Option<Strength> {
        let gossip = self.gossip.as_ref()?;
        let derived = gossip.snapshot.derived();
        let first = SeenSet::new().nth_missing(&derived.live, 0).unwrap_or(gossip.my_index);
        let first = gossip.state().members().get(first)?.node().address.clone();
        Some(Strength {
            live: derived.live_count as u64,
            first,
        })
    }

    /// Somebody says that this incarnation is dead. Believed at once, unless the messenger is dead here: then each
    /// side has put the other down, and the weaker one gives in.
    pub(super) fn receive_gone(&mut self, from: &NodeId, known: Incarnation, theirs: &Strength, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        if known < self.me.incarnation {
            return self.drop_message(DropReason::Misdirected);
        }
        let dead_here = matches!(
            gossip.state().state_of(from),
            Some(MemberState::Down | MemberState::Removed)
        );
        // Of two sides that are equal in all else the higher address gives in, or they would argue for ever.
        let stays = |ours: &Strength| {
            ours.prevails_over(theirs) || (!theirs.prevails_over(ours) && self.me.address < from.address)
        };
        if dead_here && self.strength().is_some_and(|ours| stays(&ours)) {
            return self.send_gone(from.address.clone());
        }
        if self.phase == Phase::Departing {
            return self.farewell_heard();
        }
        if self.leave_by.is_some() {
            // Removal follows on exiting; any other end was not agreed on.
            let exiting = gossip.state().state_of(&self.me) == Some(MemberState::Exiting);
            return self.stop(exiting);
        }
        let snapshot = gossip.snapshot.clone();
        self.be_reborn(&snapshot, Some(known), Some(from.address.clone()), now);
    }

    pub(super) fn meet(&mut self, address: Address, now: Duration) {
        let room = self.estranged.len() < MAX_ESTRANGED || self.estranged.contains_key(&address);
        if self.phase == Phase::Member && address != self.me.address && room {
            self.estranged.insert(address.clone(), now);
            self.send_overview(address, true);
        }
    }

    /// Remembers the addresses that are put down, to notice when a partition between the two sides heals.
    pub(super) fn estrange_downed(&mut self, next: &Snapshot, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        let mut lost = Vec::new();
        let mut later = next.state().members().iter().peekable();
        for member in gossip.state().members() {
            let node = member.node();
            // Both lists are sorted: one walk, not one search per member.
            while later.next_if(|other| other.node() < node).is_some() {}
            let alive = later
                .peek()
                .is_some_and(|other| other.node() == node && other.state() < MemberState::Down);
            if alive || member.state() == MemberState::Exiting {
                continue;
            }
            let replaced = next
                .state()
                .incarnations_of(&node.address)
                .any(|other| other.state() < MemberState::Down);
            if !replaced && !self.estranged.contains_key(&node.address) {
                lost.push(node.address.clone());
            }
        }
        for address in lost {
            if self.estranged.len() >= MAX_ESTRANGED {
                let oldest = self.estranged.iter().min_by_key(|(_, since)| **since);
                if let Some(oldest) = oldest.map(|(address, _)| address.clone()) {
                    self.estranged.remove(&oldest);
                }
            }
            self.estranged.insert(address, now);
        }
    }
}
