use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Network, Sim, Violation};
use crate::{Input, MemberState, Phase};

/// How long the faults go on.
const TROUBLE: Duration = Duration::from_secs(60);
/// How long the cluster may take to become one again after the last fault.
const RECOVERY: Duration = Duration::from_secs(180);

/// A random life of a cluster: nodes join at once, then crash, restart, pause, leave, are put down and are cut off from
/// each other; in the end everything heals, and the running nodes must become one converged view.
#[derive(Debug, Clone)]
pub struct Schedule {
    seed: u64,
    nodes: usize,
}

/// What happened in a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many nodes took part.
    pub nodes: usize,
    /// How long the cluster took to become one after the last fault.
    pub recovery: Duration,
    /// How many messages and wake-ups were handled: equal for equal seeds.
    pub steps: u64,
    /// The incarnations that run at the end.
    pub members: Vec<String>,
}

impl Schedule {
    /// The life that belongs to `seed`, of 5 to 50 nodes.
    pub fn from_seed(seed: u64) -> Self {
        let nodes = SmallRng::seed_from_u64(seed ^ 0x5eed).random_range(5..=50);
        Self { seed, nodes }
    }

    /// Lives it.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run(&self) -> Result<Summary, Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let max_delay = Duration::from_millis(rng.random_range(1..200));
        let network = Network {
            loss: rng.random_range(0.0..0.1),
            min_delay: Duration::from_micros(100),
            max_delay,
        };
        let mut sim = Sim::new(rng.random(), network);
        sim.check_invariants();
        // Half of the clusters put unreachable nodes down by themselves, so that partitions split them.
        let automatic = rng.random_bool(0.5);
        if automatic {
            sim.down_after(Duration::from_secs(rng.random_range(3..15)));
        }
        self.start(&mut sim, &mut rng);
        while sim.now() < TROUBLE {
            sim.run_for(Duration::from_millis(rng.random_range(100..4000)));
            disturb(&mut sim, &mut rng, automatic);
            if let Some(violation) = sim.violation() {
                return Err(violation.clone());
            }
        }
        self.recover(sim)
    }

    fn start(&self, sim: &mut Sim, rng: &mut SmallRng) {
        for _ in 0..self.nodes {
            sim.add_node();
        }
        sim.form(0);
        for node in 1..self.nodes {
            let mut contacts = vec![0];
            contacts.insert(rng.random_range(0..2), rng.random_range(0..self.nodes));
            sim.join(node, &contacts);
            sim.run_for(Duration::from_millis(rng.random_range(0..300)));
        }
    }

    fn recover(&self, mut sim: Sim) -> Result<Summary, Violation> {
        sim.heal();
        sim.network.loss = 0.0;
        // Pauses end by themselves. The dead are put down by an outside judge who knows the truth, again and again
        // because each rejoining node has a view of its own.
        let start = sim.now();
        let limit = start + RECOVERY;
        while !sim.converged() && sim.now() < limit {
            sim.run_for(Duration::from_millis(500));
            judge(&mut sim);
        }
        if let Some(violation) = sim.violation() {
            return Err(violation.clone());
        }
        let fail = |what: String| Err(Violation { at: sim.now(), what });
        if !sim.converged() {
            return fail(format!("not one view after healing:\n{}", describe(&sim)));
        }
        let running: Vec<usize> = sim.running().collect();
        if let Some(node) = running
            .iter()
            .find(|node| !sim.core(**node).snapshot().is_some_and(consistent))
        {
            return fail(format!("the digest of {node} does not match its state"));
        }
        Ok(Summary {
            nodes: self.nodes,
            recovery: sim.now() - start,
            steps: sim.traffic().steps,
            members: running
                .iter()
                .map(|node| sim.core(*node).self_node().to_string())
                .collect(),
        })
    }
}

fn consistent(snapshot: &crate::Snapshot) -> bool {
    snapshot.state().digest_is_consistent()
}

fn disturb(sim: &mut Sim, rng: &mut SmallRng, automatic: bool) {
    let node = rng.random_range(0..sim.len());
    // One node never crashes or leaves: with nobody left there would be no cluster to come back to.
    let mortal = node != 0;
    match rng.random_range(0..100) {
        0..15 if mortal => sim.crash(node),
        15..35 if mortal && (!sim.is_alive(node) || sim.core(node).phase() == Phase::Stopped) => {
            sim.restart(node);
            sim.join(node, &[0, rng_other(sim, rng)]);
        }
        15..25 if mortal => {
            // A quick restart: the others may not even notice that the node was away.
            sim.restart(node);
            sim.join(node, &[rng_other(sim, rng), 0]);
        }
        35..55 => sim.pause(node, Duration::from_millis(rng.random_range(100..12_000))),
        55..65 => {
            let groups = rng.random_range(2..4);
            (0..sim.len()).for_each(|node| sim.set_group(node, rng.random_range(0..groups)));
        }
        65..75 => sim.heal(),
        75..78 => sim.set_deaf(node, rng.random_range(0.3..1.0)),
        78..84 if mortal => {
            let within = Duration::from_secs(rng.random_range(1..20));
            sim.input(node, Input::Leave { node: None, within });
        }
        84..88 => {
            let victim = sim.core(rng_other(sim, rng)).self_node().clone();
            sim.input(node, Input::Down { node: victim });
        }
        88..92 => sim.input(
            node,
            Input::SetMeta {
                key: format!("k{node}"),
                value: Some(vec![1, 2, 3]),
            },
        ),
        92..96 if !automatic => judge(sim),
        _ => {}
    }
}

fn rng_other(sim: &Sim, rng: &mut SmallRng) -> usize {
    rng.random_range(0..sim.len())
}

/// Puts down whoever is unreachable in somebody's view and in truth does not run as that incarnation.
fn judge(sim: &mut Sim) {
    let running: Vec<usize> = sim.running().collect();
    for node in running {
        let view = sim.core(node).view();
        for member in view
            .members
            .iter()
            .filter(|member| !member.reachable && member.state != MemberState::Down)
        {
            let index = usize::from(member.node.address.port());
            let runs = sim.is_alive(index) && *sim.core(index).self_node() == member.node;
            let left = sim.core(index).phase() == Phase::Stopped;
            if !runs || left {
                sim.input(
                    node,
                    Input::Down {
                        node: member.node.clone(),
                    },
                );
            }
        }
    }
}

/// The views of all nodes in a few lines, for whoever looks at a failed seed.
fn describe(sim: &Sim) -> String {
    let mut text = String::new();
    for node in sim.running() {
        let view = sim.core(node).view();
        let members: Vec<String> = view
            .members
            .iter()
            .map(|member| {
                let mark = if member.reachable { "" } else { "!" };
                format!(
                    "{}#{}={}{mark}",
                    member.node.address.port(),
                    member.node.incarnation,
                    member.state
                )
            })
            .collect();
        text += &format!(
            "{} {:?} {} converged={} [{}]\n",
            view.self_node,
            view.phase,
            view.cluster,
            view.converged,
            members.join(" ")
        );
    }
    text
}
