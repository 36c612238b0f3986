use std::time::Duration;

use rand::RngExt;

use super::{Core, DropReason, Gossip, Origin};
use crate::state::{GossipState, SeenSet, Snapshot, Successor};
use crate::{Address, ClusterId, Event, MemberState, Message, NodeId, Phase, Refusal};

/// How many contact points are remembered; more would not make success likelier.
const MAX_CONTACTS: usize = 64;
/// The longest wait between two rounds through the contact points, in join timeouts.
const MAX_BACKOFF: u32 = 4;
/// After how many fruitless rounds a reborn node may form its old cluster anew.
const ROUNDS_BEFORE_REFORMING: u32 = 4;

/// Asking contact points in turn.
pub(super) struct Attempt {
    purpose: Purpose,
    contacts: Vec<Address>,
    /// Who is being asked; past the end between two rounds.
    current: usize,
    deadline: Duration,
    persist: bool,
    rounds: u32,
    /// Whether a contact with a lower address said in this round that it waits as well.
    lower_waits: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Get into a cluster: this one, or any when `NONE`.
    Enter(ClusterId),
    /// Find out the id of the cluster that the whole own cluster is to join.
    Link,
}

impl Attempt {
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }
}

impl Core {
    pub(super) fn form(&mut self, cluster: Option<ClusterId>, now: Duration) {
        if !matches!(self.phase, Phase::Idle | Phase::Joining) {
            return;
        }
        let cluster = cluster.unwrap_or_else(|| ClusterId(self.rng.random::<u64>().max(1)));
        self.attempt = None;
        let mut state = GossipState::new(cluster);
        state.advance(&self.me, MemberState::Joining);
        state.bump(self.key);
        self.emit(Event::Formed { cluster });
        self.enter(Snapshot::new(state), now);
        // Nobody else has to see it: joining becomes up at once.
        let me = self.me.clone();
        self.update(now, |state| {
            state.advance(&me, MemberState::Up);
        });
    }

    fn enter(&mut self, snapshot: Snapshot, now: Duration) {
        self.phase = Phase::Member;
        self.attempt = None;
        self.moving_since = None;
        self.next_gossip = now + self.config.fast_interval.mul_f64(self.rng.random_range(0.0..1.0));
        self.next_heartbeat = now + self.config.heartbeat_interval.mul_f64(self.rng.random_range(0.0..0.5));
        self.adopt(snapshot, SeenSet::new(), Origin::Remote, now);
    }

    pub(super) fn join(&mut self, contacts: Vec<Address>, persist: bool, now: Duration) {
        match self.phase {
            Phase::Idle | Phase::Joining => self.start_attempt(Purpose::Enter(ClusterId::NONE), contacts, persist, now),
            // A singleton has nobody to take along, but goes the same way.
            Phase::Member => self.start_attempt(Purpose::Link, contacts, persist, now),
            Phase::Departing | Phase::Stopped => self.emit(Event::JoinFailed),
        }
    }

    pub(super) fn enter_cluster(&mut self, cluster: ClusterId, contacts: Vec<Address>, now: Duration) {
        match self.phase {
            Phase::Idle | Phase::Joining => self.start_attempt(Purpose::Enter(cluster), contacts, false, now),
            Phase::Member | Phase::Departing | Phase::Stopped => self.emit(Event::JoinFailed),
        }
    }

    fn start_attempt(&mut self, purpose: Purpose, mut contacts: Vec<Address>, persist: bool, now: Duration) {
        // Never join via oneself: whoever answers there is an old life of this very node, or nobody.
        let mut asked = std::collections::BTreeSet::from([self.me.address.clone()]);
        contacts.retain(|contact| asked.insert(contact.clone()));
        contacts.truncate(MAX_CONTACTS);
        if contacts.is_empty() {
            return self.emit(Event::JoinFailed);
        }
        if self.phase != Phase::Member {
            self.phase = Phase::Joining;
        }
        let attempt = Attempt {
            purpose,
            contacts,
            current: 0,
            deadline: now,
            persist,
            rounds: 0,
            lower_waits: false,
        };
        self.attempt = Some(attempt);
        self.ask(now);
    }

    fn ask(&mut self, now: Duration) {
        let Some(attempt) = &mut self.attempt else { return };
        let Some(contact) = attempt.contacts.get(attempt.current).cloned() else {
            return;
        };
        attempt.deadline = now + self.config.join_timeout;
        let message = match attempt.purpose {
            Purpose::Enter(expected) => Message::Join { expected },
            Purpose::Link => Message::Identify,
        };
        self.send(contact, message);
    }

    pub(super) fn tick_attempt(&mut self, now: Duration) {
        if self.attempt.as_ref().is_some_and(|attempt| now >= attempt.deadline) {
            self.ask_next(now);
        }
    }

    fn ask_next(&mut self, now: Duration) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.current += 1;
        if attempt.current < attempt.contacts.len() {
            return self.ask(now);
        }
        if attempt.current > attempt.contacts.len() {
            // The wait between two rounds is over.
            attempt.current = 0;
            attempt.lower_waits = false;
            return self.ask(now);
        }
        attempt.rounds += 1;
        if !attempt.persist {
            self.attempt = None;
            if self.phase == Phase::Joining {
                self.phase = Phase::Idle;
            }
            return self.emit(Event::JoinFailed);
        }
        let backoff = self.config.join_timeout * attempt.rounds.min(MAX_BACKOFF) / 4;
        attempt.deadline = now + backoff.mul_f64(self.rng.random_range(0.5..1.5));
        let (rounds, lower_waits, purpose) = (attempt.rounds, attempt.lower_waits, attempt.purpose);
        if let Purpose::Enter(cluster) = purpose
            && cluster != ClusterId::NONE
            && self.moved.is_none()
            && rounds >= ROUNDS_BEFORE_REFORMING
            && !lower_waits
        {
            // Everybody was put down and waits for everybody else: the first in order starts their cluster again.
            self.form(Some(cluster), now);
        }
    }

    pub(super) fn abandon_join(&mut self) {
        self.attempt = None;
        if self.phase == Phase::Joining {
            self.phase = Phase::Idle;
        }
    }

    fn is_asking(&self, contact: &Address) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.contacts.get(attempt.current) == Some(contact))
    }

    pub(super) fn receive_refusal(&mut self, from: &NodeId, refusal: Refusal, now: Duration) {
        if !self.is_asking(&from.address) {
            return self.drop_message(DropReason::Stray);
        }
        self.emit(Event::Refused {
            by: from.clone(),
            refusal,
        });
        match refusal {
            Refusal::Stale(known) if self.phase == Phase::Joining && known >= self.me.incarnation => {
                self.take_incarnation(known.next());
                self.ask(now);
            }
            Refusal::NotAMember => {
                let lower = from.address < self.me.address;
                self.attempt.iter_mut().for_each(|attempt| attempt.lower_waits |= lower);
                self.ask_next(now);
            }
            _ => self.ask_next(now),
        }
    }

    pub(super) fn receive_welcome(&mut self, from: &NodeId, snapshot: Snapshot, now: Duration) {
        let expected = match self.attempt.as_ref().map(|attempt| attempt.purpose) {
            Some(Purpose::Enter(expected)) if self.phase == Phase::Joining => expected,
            _ => return self.drop_message(DropReason::Stray),
        };
        let state = snapshot.state();
        let alive = state
            .member(&self.me)
            .is_some_and(|member| member.state() < MemberState::Down);
        let right = expected == ClusterId::NONE || expected == state.cluster();
        if !self.is_asking(&from.address) || !alive || !right {
            return self.drop_message(DropReason::Stray);
        }
        let cluster = state.cluster();
        self.emit(Event::Joined { cluster });
        self.enter(snapshot, now);
        // The contact learns at once that the newcomer has seen the state.
        self.send_overview(from.address.clone(), false);
    }

    pub(super) fn receive_join(&mut self, from: &NodeId, expected: ClusterId, now: Duration) {
        match self.admit(from, expected, now) {
            Ok(()) => {
                if let Some(snapshot) = self.snapshot().cloned() {
                    self.send(from.address.clone(), Message::Welcome { snapshot });
                }
            }
            Err(refusal) => self.send(from.address.clone(), Message::Refused(refusal)),
        }
    }

    fn admit(&mut self, newcomer: &NodeId, expected: ClusterId, now: Duration) -> Result<(), Refusal> {
        let gossip = self
            .gossip
            .as_ref()
            .filter(|_| self.phase == Phase::Member)
            .ok_or(Refusal::NotAMember)?;
        let state = gossip.state();
        if state.successor().is_some() {
            return Err(Refusal::NotAMember);
        }
        if expected != ClusterId::NONE && expected != state.cluster() {
            return Err(Refusal::OtherCluster(state.cluster()));
        }
        match state.state_of(newcomer) {
            Some(MemberState::Down | MemberState::Removed) => return Err(stale(state, newcomer)),
            Some(_) => return Ok(()),
            None => {}
        }
        if state.latest_incarnation(&newcomer.address) > Some(newcomer.incarnation) {
            return Err(stale(state, newcomer));
        }
        if state.members().len() >= self.config.max_members {
            return Err(Refusal::Full);
        }
        let previous: Vec<NodeId> = state
            .incarnations_of(&newcomer.address)
            .map(|member| member.node().clone())
            .collect();
        self.estranged.remove(&newcomer.address);
        self.update(now, |state| {
            // The address answers as a new incarnation: the old one is surely dead.
            for old in &previous {
                state.advance(old, MemberState::Down);
            }
            state.advance(newcomer, MemberState::Joining);
        });
        Ok(())
    }

    pub(super) fn receive_identity(&mut self, from: &NodeId, cluster: ClusterId, now: Duration) {
        let linking = self
            .attempt
            .as_ref()
            .is_some_and(|attempt| attempt.purpose == Purpose::Link);
        if !linking && self.phase == Phase::Member {
            // Told in answer to gossip that strayed into another cluster.
            return self.hear_of(cluster);
        }
        if !linking || !self.is_asking(&from.address) {
            return self.drop_message(DropReason::Stray);
        }
        if cluster == ClusterId::NONE {
            return self.ask_next(now);
        }
        let contacts = self.attempt.take().map(|attempt| attempt.contacts).unwrap_or_default();
        if cluster == self.cluster() {
            return self.emit(Event::AlreadyTogether);
        }
        self.update(now, |state| state.set_successor(Successor { cluster, contacts }));
    }

    /// Goes over to the successor cluster once everybody knows of it, or has had the time to.
    pub(super) fn tick_move(&mut self, now: Duration) {
        let Some(successor) = self
            .gossip
            .as_ref()
            .and_then(|gossip| gossip.state().successor().cloned())
        else {
            return;
        };
        let since = *self.moving_since.get_or_insert(now);
        let known_to_all = self.gossip.as_ref().is_some_and(Gossip::spread);
        if !known_to_all && now < since + self.config.gossip_interval * 20 {
            return;
        }
        let from = self.cluster();
        self.emit(Event::Moving {
            from,
            to: successor.cluster,
        });
        self.moved = Some((from, successor.clone()));
        self.abandon_state();
        self.start_attempt(Purpose::Enter(successor.cluster), successor.contacts, true, now);
    }

    /// Asks to be let back into `cluster`.
    pub(super) fn rejoin(&mut self, cluster: ClusterId, contacts: Vec<Address>, now: Duration) {
        self.start_attempt(Purpose::Enter(cluster), contacts, true, now);
    }

    /// Forgets everything about the cluster that this node was in.
    pub(super) fn abandon_state(&mut self) {
        self.gossip = None;
        self.foreign.clear();
        self.monitor.clear();
        self.attempt = None;
        self.phase = Phase::Idle;
        self.next_gossip = Duration::MAX;
        self.next_heartbeat = Duration::MAX;
    }
}

fn stale(state: &GossipState, newcomer: &NodeId) -> Refusal {
    Refusal::Stale(
        state
            .latest_incarnation(&newcomer.address)
            .unwrap_or(newcomer.incarnation),
    )
}
