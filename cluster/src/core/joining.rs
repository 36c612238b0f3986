use std::time::Duration;

use rand::RngExt;

use super::{Core, DropReason, Origin};
use crate::state::{GossipState, SeenSet, Snapshot};
use crate::{Address, ClusterId, Event, Incarnation, MemberState, Message, NodeId, Phase, Refusal};

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
    /// Whether the present contact has already called an incarnation of this node stale.
    renamed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Get into a cluster: this one, or any when `NONE`.
    Enter(ClusterId),
    /// Find out the id of the cluster that the whole own cluster is to join.
    Link,
    /// Go over to the successor of the own cluster, and stay a member here until that lets this node in.
    Move(ClusterId),
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
            renamed: false,
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
            Purpose::Enter(expected) | Purpose::Move(expected) => Message::Join { expected },
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
        attempt.renamed = false;
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
            Refusal::Stale(known) if known >= self.me.incarnation => self.rename(known, now),
            Refusal::NotAMember => {
                let lower = from.address < self.me.address;
                self.attempt.iter_mut().for_each(|attempt| attempt.lower_waits |= lower);
                self.ask_next(now);
            }
            _ => self.ask_next(now),
        }
    }

    /// A contact knows this address from a later life: asks again under a later incarnation still, but only once, or a
    /// contact that says so each time would be asked without end.
    fn rename(&mut self, known: Incarnation, now: Duration) {
        let Some(mut attempt) = self.attempt.take() else { return };
        if let Purpose::Move(cluster) = attempt.purpose {
            // Nobody can change its incarnation in the cluster that it is a member of. The successor answers: go.
            self.leave_for(cluster);
            self.phase = Phase::Joining;
            attempt.purpose = Purpose::Enter(cluster);
        }
        let again = !std::mem::replace(&mut attempt.renamed, true);
        self.attempt = Some(attempt);
        if self.phase == Phase::Joining {
            self.take_incarnation(known.next());
        }
        if again { self.ask(now) } else { self.ask_next(now) }
    }

    pub(super) fn receive_welcome(&mut self, from: &NodeId, snapshot: Snapshot, now: Duration) {
        let (expected, moving) = match self.attempt.as_ref().map(|attempt| attempt.purpose) {
            Some(Purpose::Enter(expected)) if self.phase == Phase::Joining => (expected, false),
            Some(Purpose::Move(expected)) if self.goes_to() == Some(expected) => (expected, true),
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
        if moving {
            self.leave_for(cluster);
        }
        self.emit(Event::Joined { cluster });
        self.enter(snapshot, now);
        self.end_mutual_move(now);
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
        // About to go. Were two clusters told to join each other, nobody would let anybody in: the smaller id does.
        if state
            .successor()
            .is_some_and(|successor| successor.cluster < state.cluster())
        {
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
        self.update(now, |state| state.decide_successor(cluster, contacts));
    }

    /// Asks to be let into the successor cluster once everybody here knows of it, or has had the time to.
    pub(super) fn tick_move(&mut self, now: Duration) {
        let Some(gossip) = &self.gossip else { return };
        let under_way = self.attempt.as_ref().and_then(|attempt| match attempt.purpose {
            Purpose::Move(cluster) => Some(cluster),
            Purpose::Enter(_) | Purpose::Link => None,
        });
        let Some(successor) = gossip.state().successor().filter(|_| self.leave_by.is_none()) else {
            self.moving_since = None;
            if under_way.is_some() {
                self.attempt = None;
            }
            return;
        };
        let since = *self.moving_since.get_or_insert(now);
        let time_is_up = now >= since + self.config.gossip_interval * 20;
        if under_way == Some(successor.cluster) || !(gossip.spread() || time_is_up) {
            return;
        }
        // Those who have gone before are good contacts too, should the ones named at first be dead by now.
        let members = gossip
            .state()
            .members()
            .iter()
            .map(|member| member.node().address.clone());
        let contacts = successor.contacts.iter().cloned().chain(members).collect();
        let cluster = successor.cluster;
        self.start_attempt(Purpose::Move(cluster), contacts, true, now);
    }

    /// The cluster that the own one was told to join.
    fn goes_to(&self) -> Option<ClusterId> {
        let successor = self.gossip.as_ref().and_then(|gossip| gossip.state().successor());
        successor.map(|successor| successor.cluster)
    }

    /// Forgets the own cluster for its successor, and remembers where it went: for stragglers this node is a contact.
    fn leave_for(&mut self, to: ClusterId) {
        let from = self.cluster();
        self.emit(Event::Moving { from, to });
        if let Some(mut successor) = self
            .gossip
            .as_ref()
            .and_then(|gossip| gossip.state().successor())
            .cloned()
        {
            successor.contacts.insert(0, self.me.address.clone());
            successor.contacts.truncate(MAX_CONTACTS);
            self.moved = Some((from, successor));
        }
        self.abandon_state();
        self.estranged.clear();
    }

    /// Two clusters were told to join each other. This node has come from the one that this one wants to go to, so
    /// this is where both stay.
    fn end_mutual_move(&mut self, now: Duration) {
        let came_from = self.moved.as_ref().map(|(from, _)| *from);
        if came_from.is_some() && self.goes_to() == came_from {
            let here = self.cluster();
            self.update(now, |state| state.decide_successor(here, Vec::new()));
        }
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
