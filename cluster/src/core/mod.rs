//! The membership protocol as a pure state machine: inputs and the time in, messages and events out.

mod departure;
mod gossip;
mod joining;
mod leader;
mod meta;
mod monitor;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::message::Envelope;
use crate::state::{GossipState, SeenSet, Snapshot, Successor};
use crate::{
    Address, ClusterId, Config, Downing, DowningOff, Event, ExitGate, MemberState, Message, NodeId, NodeKey,
    NothingPending, Phase,
};
use departure::Departure;
use joining::Attempt;
pub use meta::{MAX_META_BYTES, MAX_META_ENTRIES, MAX_META_TOTAL, MetaError};
use monitor::Monitor;
use view::Facts;

/// What happens to a node.
#[derive(Debug, Clone)]
pub enum Input {
    /// Time has passed; due at the latest at [`Core::next_wake`].
    Tick,
    /// A message has come.
    Receive(Envelope),
    /// Form a cluster of one's own, with this id or a random one.
    Form {
        /// The id to use.
        cluster: Option<ClusterId>,
    },
    /// Ask the contact points, in turn, to be let in. A node that is already in a cluster with others takes the whole
    /// cluster along.
    Join {
        /// Whom to ask.
        contacts: Vec<Address>,
        /// Whether to go on for ever, or to give up after everybody was asked once.
        persist: bool,
    },
    /// Ask the contact points once each, in turn, to be let into this cluster and no other. Only for a node that is in
    /// none.
    Enter {
        /// The cluster.
        cluster: ClusterId,
        /// Whom to ask.
        contacts: Vec<Address>,
    },
    /// Stop asking contact points.
    AbandonJoin,
    /// Gossip with whoever is at this address: if it is in the same cluster, and the two do not know each other (each side
    /// has removed the other, say), their views become one.
    Meet {
        /// Where.
        address: Address,
    },
    /// Forget the cluster without a word and be a new incarnation in none. The others find out as they do of a crash.
    Reset,
    /// Leave gracefully, or tell another node to. This node stops at the deadline in any case.
    Leave {
        /// Who is to leave; `None` for this node.
        node: Option<NodeId>,
        /// How long a graceful exit of this node may take.
        within: Duration,
    },
    /// Put a node down.
    Down {
        /// Who.
        node: NodeId,
    },
    /// Store a value in the gossip state, or remove it.
    SetMeta {
        /// Its name.
        key: String,
        /// Its value, `None` to remove.
        value: Option<Vec<u8>>,
    },
}

/// What a node wants done.
#[derive(Debug, Clone)]
pub enum Output {
    /// Send this.
    Send(Envelope),
    /// Tell the user.
    Event(Event),
    /// The leader acts on this state, which everybody has seen: for those who check that.
    Led(Snapshot),
    /// A message was not for this node as it is now; counted, nothing else.
    Dropped(DropReason),
}

/// Why the core did not act on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// It belongs to another cluster.
    ForeignCluster,
    /// It came while this node is in no cluster, or answers a question that is no longer asked.
    Stray,
    /// Its sender is down or removed here.
    DeadSender,
    /// It was addressed to somebody else.
    Misdirected,
}

/// A node without sockets and clock: [`Core::handle`] is all there is.
///
/// ```
/// use coord_cluster::{Config, Core, Incarnation, Input, MemberState, NodeId};
/// use std::time::Duration;
///
/// let me = NodeId::new("localhost:7400".parse()?, Incarnation(1));
/// let mut node = Core::new(me.clone(), Config::default(), 42);
/// node.handle(Input::Form { cluster: None }, Duration::ZERO);
/// let view = node.view();
/// assert!(view.converged && view.is_leader());
/// assert_eq!(view.self_member().map(|member| member.state), Some(MemberState::Up));
/// # Ok::<(), coord_cluster::InvalidAddress>(())
/// ```
pub struct Core {
    config: Config,
    me: NodeId,
    key: NodeKey,
    rng: SmallRng,
    phase: Phase,
    gossip: Option<Gossip>,
    monitor: Monitor,
    downing: Box<dyn Downing>,
    gate: Box<dyn ExitGate>,
    attempt: Option<Attempt>,
    next_gossip: Duration,
    next_heartbeat: Duration,
    last_input: Duration,
    /// When this node stops even if its exit was not agreed on.
    leave_by: Option<Duration>,
    departure: Departure,
    /// Since when a successor cluster is known.
    moving_since: Option<Duration>,
    /// The cluster that this node came from, for stragglers who are still there.
    moved: Option<(ClusterId, Successor)>,
    /// Other clusters that were heard of.
    foreign: BTreeSet<ClusterId>,
    /// Addresses that were put down, and since when: they may be alive on the other side of a partition.
    estranged: BTreeMap<Address, Duration>,
    facts: Facts,
    out: Vec<Output>,
}

/// The state and who has seen it.
struct Gossip {
    snapshot: Snapshot,
    seen: SeenSet,
    my_index: usize,
}

impl Gossip {
    fn state(&self) -> &GossipState {
        self.snapshot.state()
    }

    fn converged(&self) -> bool {
        let derived = self.snapshot.derived();
        !derived.blocked && self.seen.covers(&derived.must_see)
    }

    /// Whether everybody who can be reached has seen this state.
    fn spread(&self) -> bool {
        self.seen.covers(&self.snapshot.derived().live)
    }
}

impl Core {
    /// A node that is in no cluster yet. The same seed and inputs give the same outputs.
    pub fn new(me: NodeId, config: Config, seed: u64) -> Self {
        let key = me.key();
        Self {
            monitor: Monitor::new(config.detector.clone()),
            config,
            key,
            me,
            rng: SmallRng::seed_from_u64(seed),
            phase: Phase::Idle,
            gossip: None,
            downing: Box::new(DowningOff),
            gate: Box::new(NothingPending),
            attempt: None,
            next_gossip: Duration::MAX,
            next_heartbeat: Duration::MAX,
            last_input: Duration::ZERO,
            leave_by: None,
            departure: Departure::default(),
            moving_since: None,
            moved: None,
            foreign: BTreeSet::new(),
            estranged: BTreeMap::new(),
            facts: Facts::default(),
            out: Vec::new(),
        }
    }

    /// Replaces the rule by which unreachable nodes are put down.
    #[must_use]
    pub fn with_downing(self, downing: impl Downing + 'static) -> Self {
        self.with_boxed_downing(Box::new(downing))
    }

    /// Replaces the hook between leaving and exiting.
    #[must_use]
    pub fn with_exit_gate(self, gate: impl ExitGate + 'static) -> Self {
        self.with_boxed_exit_gate(Box::new(gate))
    }

    pub(crate) fn with_boxed_downing(mut self, downing: Box<dyn Downing>) -> Self {
        self.downing = downing;
        self
    }

    pub(crate) fn with_boxed_exit_gate(mut self, gate: Box<dyn ExitGate>) -> Self {
        self.gate = gate;
        self
    }

    /// Takes one input at time `now`, counted from any fixed moment, and says what to do about it.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Output> {
        self.forgive_own_pause(now);
        match input {
            Input::Tick => self.tick(now),
            Input::Receive(envelope) => self.receive(envelope, now),
            Input::Form { cluster } => self.form(cluster, now),
            Input::Join { contacts, persist } => self.join(contacts, persist, now),
            Input::Enter { cluster, contacts } => self.enter_cluster(cluster, contacts, now),
            Input::AbandonJoin => self.abandon_join(),
            Input::Reset => self.reset(),
            Input::Meet { address } => self.meet(address, now),
            Input::Leave { node, within } => self.leave(node, within, now),
            Input::Down { node } => self.down(&[node], now),
            Input::SetMeta { key, value } => self.set_meta(key, value, now),
        }
        self.contradict(now);
        self.lead(now);
        self.report();
        std::mem::take(&mut self.out)
    }

    /// When [`Input::Tick`] is due at the latest.
    pub fn next_wake(&self) -> Duration {
        let mut wake = self
            .next_gossip
            .min(self.next_heartbeat)
            .min(self.monitor.next_deadline());
        if let Some(attempt) = &self.attempt {
            wake = wake.min(attempt.deadline());
        }
        wake.min(self.leave_by.unwrap_or(Duration::MAX))
    }

    /// This node's address and current incarnation.
    pub fn self_node(&self) -> &NodeId {
        &self.me
    }

    /// What this node is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The gossip state, when in a cluster.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.gossip.as_ref().map(|gossip| &gossip.snapshot)
    }

    /// The cluster, [`ClusterId::NONE`] when in none.
    pub fn cluster(&self) -> ClusterId {
        self.gossip
            .as_ref()
            .map_or(ClusterId::NONE, |gossip| gossip.state().cluster())
    }

    /// Whether all members have seen this node's state.
    pub fn converged(&self) -> bool {
        self.phase == Phase::Member && self.gossip.as_ref().is_some_and(Gossip::converged)
    }

    /// Whether enough observers have given up on `node` in this node's view.
    pub fn is_unreachable(&self, node: &NodeId) -> bool {
        self.snapshot().is_some_and(|snapshot| {
            let index = snapshot.state().index_of(node);
            index.is_some_and(|index| snapshot.derived().unreachable.contains(&index))
        })
    }

    fn tick(&mut self, now: Duration) {
        self.tick_attempt(now);
        if self.phase == Phase::Departing {
            return self.tick_farewell(now);
        }
        if self.phase != Phase::Member {
            return self.tick_leave(now);
        }
        if self.monitor.check(now) {
            self.publish_suspects(now);
        }
        if now >= self.next_heartbeat {
            self.next_heartbeat = now + self.config.heartbeat_interval;
            self.ping_watched();
        }
        if now >= self.next_gossip {
            self.decide_downing(now);
            self.tick_move(now);
            self.gossip_round(now);
        }
        self.tick_leave(now);
    }

    /// A node that was stopped for a while must not take its own silence for that of the others.
    fn forgive_own_pause(&mut self, now: Duration) {
        // Counted from the last input too: a backlog of messages after one pause is still one pause.
        let late = now.saturating_sub(self.next_wake().max(self.last_input));
        self.last_input = now;
        if late > self.config.heartbeat_interval / 2 {
            self.monitor.forgive(late);
        }
    }

    /// Changes the own state: a new version that only this node has seen.
    fn update(&mut self, now: Duration, change: impl FnOnce(&mut GossipState)) {
        let Some(gossip) = &self.gossip else { return };
        let before = gossip.state().digest();
        let mut state = gossip.state().clone();
        change(&mut state);
        debug_assert!(
            gossip.state().legal_steps_to(&state),
            "an illegal change of a member's state"
        );
        if state.digest() != before {
            state.bump(self.key);
            self.adopt(Snapshot::new(state), SeenSet::new(), Origin::Own, now);
        }
    }

    /// Makes `snapshot` the own state and draws the consequences.
    fn adopt(&mut self, snapshot: Snapshot, mut seen: SeenSet, origin: Origin, now: Duration) {
        let fate = snapshot.state().state_of(&self.me);
        match fate {
            Some(MemberState::Removed | MemberState::Down) | None => {
                return self.accept_fate(snapshot, fate, origin, now);
            }
            Some(state) => self.note_own_state(state, now),
        }
        let Some(my_index) = snapshot.state().index_of(&self.me) else {
            return;
        };
        seen.insert(my_index);
        self.estrange_downed(&snapshot, now);
        let fresh = self
            .gossip
            .as_ref()
            .is_none_or(|old| old.state().digest() != snapshot.state().digest());
        self.gossip = Some(Gossip {
            snapshot,
            seen,
            my_index,
        });
        if fresh {
            self.watch_successors(now);
            // News travels at the fast pace from here on, not when the slow timer happens to fire.
            let soon = self.config.fast_interval.mul_f64(self.rng.random_range(0.2..1.0));
            self.next_gossip = self.next_gossip.min(now + soon);
        }
    }

    fn send(&mut self, to: Address, message: Message) {
        let cluster = self.cluster();
        self.out.push(Output::Send(Envelope {
            from: self.me.clone(),
            to,
            cluster,
            message,
        }));
    }

    fn emit(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    fn drop_message(&mut self, reason: DropReason) {
        self.out.push(Output::Dropped(reason));
    }
}

/// Where a new state comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This node changed it.
    Own,
    /// Another node sent it.
    Remote,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("me", &self.me)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
