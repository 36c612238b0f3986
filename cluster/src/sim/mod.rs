//! A whole cluster in one process on virtual time, with loss, delay, partitions, pauses and crashes from a seed.
//!
//! ```
//! use coord_cluster::sim::{Network, Sim};
//! use std::time::Duration;
//!
//! let mut sim = Sim::new(7, Network::default());
//! let founder = sim.add_node();
//! sim.form(founder);
//! for _ in 0..9 {
//!     let node = sim.add_node();
//!     sim.join(node, &[founder]);
//! }
//! assert!(sim.run_until_converged(Duration::from_secs(30)).is_some());
//! assert_eq!(sim.core(3).view().up().count(), 10);
//! ```

mod check;
mod queue;
mod schedule;

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

pub use check::{Checker, Violation};
pub use schedule::{Schedule, Summary};

use crate::{
    Address, Config, Core, DowningAfterStable, Envelope, Event, Incarnation, Input, Message, NodeId, Output, Phase,
};
use queue::{Due, Queue};

/// How the simulated network behaves.
#[derive(Debug, Clone)]
pub struct Network {
    /// The share of messages that is lost.
    pub loss: f64,
    /// The least time that a message takes.
    pub min_delay: Duration,
    /// The most time that a message takes.
    pub max_delay: Duration,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            loss: 0.0,
            min_delay: Duration::from_micros(500),
            max_delay: Duration::from_millis(10),
        }
    }
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// Messages handed to the network.
    pub sent: u64,
    /// Their bytes on the wire, when measuring was switched on.
    pub bytes: u64,
    /// Messages and wake-ups handled by nodes.
    pub steps: u64,
    /// Messages that nodes did not act on.
    pub dropped: u64,
}

/// The most messages that a paused node finds when it wakes up; a socket buffer is no longer either.
const PAUSED_INBOX: usize = 10_000;
const HOST: &str = "sim";

struct Slot {
    core: Core,
    alive: bool,
    paused: bool,
    inbox: Vec<Envelope>,
    group: u32,
    /// The share of the messages to this node that is lost, beside what the network loses.
    deaf: f64,
    /// When the earliest wake-up in the queue is due.
    scheduled: Duration,
    /// Wake-ups of an earlier life are void.
    life: u32,
}

/// The simulation.
pub struct Sim {
    /// The network; may be changed at any time.
    pub network: Network,
    config: Config,
    stable_downing: Option<Duration>,
    now: Duration,
    queue: Queue,
    slots: Vec<Slot>,
    rng: SmallRng,
    traffic: Traffic,
    measure: bool,
    events: Option<Vec<(Duration, usize, Event)>>,
    checker: Option<Checker>,
}

impl Sim {
    /// An empty simulation. The same seed and calls give the same history.
    pub fn new(seed: u64, network: Network) -> Self {
        Self {
            network,
            config: Config::default(),
            stable_downing: None,
            now: Duration::ZERO,
            queue: Queue::default(),
            slots: Vec::new(),
            rng: SmallRng::seed_from_u64(seed),
            traffic: Traffic::default(),
            measure: false,
            events: None,
            checker: None,
        }
    }

    /// Uses `config` for nodes added from here on.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// Nodes added from here on put unreachable ones down after this stable time.
    pub fn down_after(&mut self, stable: Duration) {
        self.stable_downing = Some(stable);
    }

    /// Checks the invariants at every step.
    pub fn check_invariants(&mut self) {
        self.checker = Some(Checker::default());
    }

    /// The first broken invariant.
    pub fn violation(&self) -> Option<&Violation> {
        self.checker.as_ref().and_then(Checker::violation)
    }

    /// Counts bytes as well as messages from here on, starting from zero.
    pub fn measure_traffic(&mut self) {
        self.measure = true;
        self.traffic = Traffic::default();
    }

    /// What was counted.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Keeps all events from here on.
    pub fn record_events(&mut self) {
        self.events = Some(Vec::new());
    }

    /// The events recorded since the last call.
    pub fn take_events(&mut self) -> Vec<(Duration, usize, Event)> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// When something happens next, if anything does.
    pub fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// The virtual time.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// How many nodes were added.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no node was added.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A node's state machine.
    pub fn core(&self, node: usize) -> &Core {
        &self.slots[node].core
    }

    /// Whether a node is running, paused or not.
    pub fn is_alive(&self, node: usize) -> bool {
        self.slots[node].alive
    }

    /// The address of a node.
    pub fn address(&self, node: usize) -> Address {
        self.slots[node].core.self_node().address.clone()
    }

    /// Adds a node that is in no cluster.
    ///
    /// # Panics
    /// Beyond 65,535 nodes.
    pub fn add_node(&mut self) -> usize {
        let index = self.slots.len();
        let port = u16::try_from(index).expect("at most 65,535 nodes");
        let address = Address::new(HOST, port).expect("a valid host");
        let core = self.new_core(NodeId::new(address, Incarnation(1)));
        self.slots.push(Slot {
            core,
            alive: true,
            paused: false,
            inbox: Vec::new(),
            group: 0,
            deaf: 0.0,
            scheduled: Duration::MAX,
            life: 0,
        });
        index
    }

    fn new_core(&mut self, node: NodeId) -> Core {
        let core = Core::new(node, self.config.clone(), self.rng.random());
        match self.stable_downing {
            Some(stable) => core.with_downing(DowningAfterStable::new(stable)),
            None => core,
        }
    }

    /// Lets a node form a cluster.
    pub fn form(&mut self, node: usize) {
        self.input(node, Input::Form { cluster: None });
    }

    /// Lets a node join through others.
    pub fn join(&mut self, node: usize, contacts: &[usize]) {
        let contacts = contacts.iter().map(|contact| self.address(*contact)).collect();
        self.input(
            node,
            Input::Join {
                contacts,
                persist: true,
            },
        );
    }

    /// Gives a node any input.
    pub fn input(&mut self, node: usize, input: Input) {
        if self.slots[node].alive && !self.slots[node].paused {
            if let (Some(checker), Input::Leave { node: None, .. }) = (&mut self.checker, &input) {
                checker.on_leave(node);
            }
            self.step(node, input);
        }
    }

    /// Ends a node without a word.
    pub fn crash(&mut self, node: usize) {
        let slot = &mut self.slots[node];
        slot.alive = false;
        slot.paused = false;
        slot.inbox.clear();
        slot.life += 1;
        slot.scheduled = Duration::MAX;
    }

    /// Starts a crashed or stopped node again at its address, as a new incarnation in no cluster.
    pub fn restart(&mut self, node: usize) {
        let old = self.slots[node].core.self_node().clone();
        let life = self.slots[node].life + 1;
        // Now and then the clock has gone back over a restart, and the node does not know how often it lived.
        let incarnation = if life.is_multiple_of(3) {
            Incarnation(1)
        } else {
            old.incarnation.next()
        };
        self.restart_as(node, incarnation);
    }

    /// Starts a node again at its address as this incarnation.
    pub fn restart_as(&mut self, node: usize, incarnation: Incarnation) {
        self.crash(node);
        let address = self.address(node);
        let core = self.new_core(NodeId::new(address, incarnation));
        self.slots[node].core = core;
        self.slots[node].alive = true;
        if let Some(checker) = &mut self.checker {
            checker.on_restart(node);
        }
    }

    /// Stops a node for a while; its messages wait.
    pub fn pause(&mut self, node: usize, pause: Duration) {
        if self.slots[node].alive && !self.slots[node].paused {
            self.slots[node].paused = true;
            let life = self.slots[node].life;
            self.queue.push(self.now + pause, Due::Resume { node, life });
        }
    }

    /// Puts a node into a group; messages pass only within a group.
    pub fn set_group(&mut self, node: usize, group: u32) {
        self.slots[node].group = group;
    }

    /// Lets a node hear less than others: this share of the messages to it is lost, those from it are not.
    pub fn set_deaf(&mut self, node: usize, share: f64) {
        self.slots[node].deaf = share;
    }

    /// Ends all partitions, and lets everybody hear.
    pub fn heal(&mut self) {
        self.slots
            .iter_mut()
            .for_each(|slot| (slot.group, slot.deaf) = (0, 0.0));
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Lets time pass until `end`.
    pub fn run_until(&mut self, end: Duration) {
        while let Some((at, due)) = self.queue.pop_before(end) {
            self.now = at;
            self.serve(due);
        }
        self.now = end;
    }

    /// Runs until all running nodes are members of one converged view, looking every 50 ms; the time it took.
    pub fn run_until_converged(&mut self, limit: Duration) -> Option<Duration> {
        self.run_until_true(limit, Self::converged)
    }

    /// Runs until a condition holds, looking every 50 ms; the time it took.
    pub fn run_until_true(&mut self, limit: Duration, condition: impl Fn(&Self) -> bool) -> Option<Duration> {
        let start = self.now;
        while !condition(self) {
            if self.now >= start + limit {
                return None;
            }
            self.run_for(Duration::from_millis(50));
        }
        Some(self.now - start)
    }

    /// The nodes that run and have not left.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|node| self.slots[*node].alive && self.slots[*node].core.phase() != Phase::Stopped)
    }

    /// Whether all running nodes are members of one converged view that holds exactly them, all of them up.
    pub fn converged(&self) -> bool {
        let mut first = None;
        let mut count = 0;
        for node in self.running() {
            let core = &self.slots[node].core;
            let Some(snapshot) = core.snapshot().filter(|_| core.converged()) else {
                return false;
            };
            let identity = (snapshot.state().cluster(), snapshot.state().digest());
            if *first.get_or_insert(identity) != identity {
                return false;
            }
            count += 1;
            let everybody = |member: &crate::Member| member.state() == crate::MemberState::Up;
            if count == 1 && !snapshot.state().members().iter().all(everybody) {
                return false;
            }
            if snapshot.state().member(core.self_node()).is_none() {
                return false;
            }
        }
        let members = self.running().next().and_then(|node| self.slots[node].core.snapshot());
        members.map_or(0, |snapshot| snapshot.state().members().len()) == count
    }

    fn serve(&mut self, due: Due) {
        match due {
            Due::Deliver(envelope) => {
                let node = usize::from(envelope.to.port());
                let Some(slot) = self.slots.get_mut(node).filter(|slot| slot.alive) else {
                    return;
                };
                if slot.paused {
                    if slot.inbox.len() < PAUSED_INBOX {
                        slot.inbox.push(envelope);
                    }
                    return;
                }
                self.step(node, Input::Receive(envelope));
            }
            Due::Wake { node, life } => {
                let slot = &mut self.slots[node];
                // A wake-up that an earlier one has replaced must not start a second line of wake-ups.
                if !slot.alive || slot.life != life || slot.paused || slot.scheduled != self.now {
                    return;
                }
                slot.scheduled = Duration::MAX;
                if slot.core.next_wake() <= self.now {
                    self.step(node, Input::Tick);
                } else {
                    self.schedule(node);
                }
            }
            Due::Resume { node, life } => {
                let slot = &mut self.slots[node];
                if slot.life != life || !slot.paused {
                    return;
                }
                slot.paused = false;
                slot.scheduled = Duration::MAX;
                for envelope in std::mem::take(&mut slot.inbox) {
                    self.step(node, Input::Receive(envelope));
                }
                self.step(node, Input::Tick);
            }
        }
    }

    fn step(&mut self, node: usize, input: Input) {
        self.traffic.steps += 1;
        let outputs = self.slots[node].core.handle(input, self.now);
        for output in outputs {
            match output {
                Output::Send(envelope) => {
                    if let (Some(checker), Message::Overview(overview)) = (&mut self.checker, &envelope.message) {
                        checker.on_overview(&self.slots[node].core, overview.digest);
                    }
                    self.send(node, envelope);
                }
                Output::Event(event) => {
                    if let Some(checker) = &mut self.checker {
                        checker.on_event(self.now, node, &self.slots[node].core, &event);
                    }
                    if let Some(events) = &mut self.events {
                        events.push((self.now, node, event));
                    }
                }
                Output::Led(snapshot) => {
                    if let Some(checker) = &mut self.checker {
                        checker.on_led(self.now, &self.slots[node].core, &snapshot);
                    }
                }
                Output::Dropped(_) => self.traffic.dropped += 1,
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.on_step(self.now, node, &self.slots[node].core);
        }
        self.schedule(node);
    }

    fn schedule(&mut self, node: usize) {
        let slot = &mut self.slots[node];
        let wake = slot.core.next_wake();
        if wake < slot.scheduled && wake != Duration::MAX {
            slot.scheduled = wake.max(self.now);
            self.queue.push(slot.scheduled, Due::Wake { node, life: slot.life });
        }
    }

    fn send(&mut self, from: usize, envelope: Envelope) {
        self.traffic.sent += 1;
        if self.measure {
            self.traffic.bytes += wire_size(&envelope.message) as u64;
        }
        let to = usize::from(envelope.to.port());
        let apart = self
            .slots
            .get(to)
            .is_none_or(|slot| slot.group != self.slots[from].group);
        let deaf = self.slots.get(to).map_or(0.0, |slot| slot.deaf);
        let loss = 1.0 - (1.0 - self.network.loss) * (1.0 - deaf);
        if apart || (loss > 0.0 && self.rng.random_bool(loss)) {
            return;
        }
        let (min, max) = (
            self.network.min_delay.as_nanos() as u64,
            self.network.max_delay.as_nanos() as u64,
        );
        let delay = Duration::from_nanos(self.rng.random_range(min..=max.max(min)));
        self.queue.push(self.now + delay, Due::Deliver(envelope));
    }
}

/// The bytes of an authenticated frame with this message on an established channel.
pub fn wire_size(message: &Message) -> usize {
    // Length, version, absent head, counter, length of the message, tag.
    const OVERHEAD: usize = 4 + 1 + 1 + 4 + 2 + 17;
    postcard::experimental::serialized_size(message).unwrap_or(0) + OVERHEAD
}
