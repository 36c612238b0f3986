//! A random life.

use std::time::Duration;

use coord_api::Env;
use coord_cluster::sim::Network;
use coord_mem::Odds;

use crate::world::{REFORM_AFTER, TTL, World, in_virtual_time};

/// How long the faults go on.
const TROUBLE: Duration = Duration::from_secs(60);
/// How long it may take to become whole after the last fault: an old entry ends, a lost cluster is given up, the next one
/// is formed, everybody joins; the dead are noticed and put down.
const RECOVERY: Duration = Duration::from_secs(REFORM_AFTER.as_secs() + 10 * TTL.as_secs() + 30);

/// What became of it.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) log: Vec<String>,
    pub(crate) formed: usize,
    pub(crate) healed: Duration,
}

/// The life that belongs to `seed`.
pub(crate) fn live(seed: u64) -> Outcome {
    in_virtual_time(async {
        let env = Env::simulated(seed);
        let network = Network {
            loss: chance(&env, 50),
            min_delay: Duration::from_micros(100),
            max_delay: Duration::from_millis(1 + env.random_u64() % 100),
        };
        let mut world = World::new(env, network);
        start(&mut world).await;
        trouble(&mut world).await;
        recover(world).await
    })
}

fn chance(env: &Env, most_per_mille: u64) -> f64 {
    (env.random_u64() % (most_per_mille + 1)) as f64 / 1000.0
}

fn pick(env: &Env, most: usize) -> usize {
    (env.random_u64() % most as u64) as usize
}

async fn start(world: &mut World) {
    let env = world.env.clone();
    if pick(&env, 4) > 0 {
        world.set_odds(Odds {
            not_sent: chance(&env, 30),
            lose_request: chance(&env, 30),
            lose_answer: chance(&env, 50),
            arrive_late: chance(&env, 50),
            delay: chance(&env, 60),
            delay_answer: chance(&env, 60),
            end_lease_early: chance(&env, 100),
            gap: chance(&env, 30),
            longest: Duration::from_millis(1 + env.random_u64() % 1500),
        });
    }
    let together = pick(&env, 2) == 0;
    for _ in 0..2 + pick(&env, 6) {
        world.add();
        if !together {
            world.sleep(env.random_duration(Duration::from_secs(3))).await;
        }
    }
}

async fn trouble(world: &mut World) {
    let env = world.env.clone();
    let until = env.now() + TROUBLE;
    let mut asleep: Vec<(coord_api::Instant, usize)> = vec![];
    while env.now() < until {
        let step = env.now() + Duration::from_millis(100) + env.random_duration(Duration::from_millis(3900));
        while let Some(at) = asleep.iter().map(|(at, _)| *at).min().filter(|at| *at <= step) {
            env.sleep_until(at).await;
            for (_, node) in asleep.extract_if(.., |(until, _)| *until <= at) {
                world.nodes[node].env.resume();
            }
        }
        env.sleep_until(step).await;
        disturb(world, &mut asleep).await;
    }
    for (_, node) in asleep {
        world.nodes[node].env.resume();
    }
}

async fn disturb(world: &mut World, asleep: &mut Vec<(coord_api::Instant, usize)>) {
    let env = world.env.clone();
    let count = world.nodes.len();
    let node = pick(&env, count);
    let is_asleep = asleep.iter().any(|(_, sleeper)| *sleeper == node);
    match pick(&env, 100) {
        0..12 => {
            world.note(&format!("{node} crashes"));
            world.crash(node);
        }
        12..32 => {
            world.note(&format!("{node} starts again"));
            world.restart(node);
        }
        32..36 => {
            world.note("everybody crashes");
            (0..count).for_each(|node| world.crash(node));
        }
        36..39 => {
            world.note("everybody starts again");
            (0..count).for_each(|node| world.restart(node));
        }
        39..50 if world.alive(node) && !is_asleep => {
            let pause = env.random_duration(Duration::from_secs(14));
            world.note(&format!("{node} stands still for {pause:?}"));
            world.pause(node, pause);
            asleep.push((env.now() + pause, node));
        }
        50..58 if world.alive(node) => {
            world.note(&format!("{node} loses the store"));
            if pick(&env, 2) == 0 {
                world.nodes[node].faults.cut();
            } else {
                world.nodes[node].faults.swallow();
            }
        }
        58..62 => {
            world.note("everybody loses the store");
            world.nodes.iter().for_each(|node| node.faults.swallow());
        }
        62..72 => {
            world.note("the store is back");
            heal_store(world);
        }
        72..80 => {
            let groups = 2 + env.random_u64() % 2;
            let parts: Vec<u32> = (0..count).map(|_| (env.random_u64() % groups) as u32).collect();
            world.note(&format!("the network splits: {parts:?}"));
            let split = |sim: &mut coord_cluster::sim::Sim| {
                parts
                    .iter()
                    .enumerate()
                    .for_each(|(node, group)| sim.set_group(node, *group));
            };
            world.net.with(split);
        }
        80..90 => {
            world.note("the network is one");
            world.net.with(|sim| sim.heal());
        }
        90..96 if world.alive(node) && !is_asleep => {
            world.note(&format!("{node} leaves"));
            let within = Duration::from_secs(1) + env.random_duration(Duration::from_secs(15));
            if let Some(bootstrap) = &world.nodes[node].bootstrap {
                // Asked is asked: nobody has to wait for it.
                let _ = tokio::time::timeout(Duration::ZERO, bootstrap.leave(within)).await;
            }
        }
        96..98 if count < 10 => {
            world.note("a newcomer");
            world.add();
        }
        _ => {}
    }
}

fn heal_store(world: &World) {
    let alive = world.nodes.iter().filter(|node| node.bootstrap.is_some());
    alive.for_each(|node| node.faults.heal());
}

async fn recover(mut world: World) -> Outcome {
    world.note("all is healed");
    world.net.with(|sim| {
        sim.heal();
        sim.network.loss = 0.0;
    });
    for node in &world.nodes {
        node.env.resume();
        node.faults.clear();
    }
    heal_store(&world);
    // Some of the dead come back, the others do not.
    for node in 0..world.nodes.len() {
        if !world.alive(node) && pick(&world.env, 2) == 0 {
            world.restart(node);
            world.nodes[node].faults.clear();
        }
    }
    if world.running().is_empty() {
        world.restart(0);
        world.nodes[0].faults.clear();
    }
    let healed = world.env.now();
    let mut violations = vec![];
    let mut whole = world.whole().await;
    while whole.is_err() && world.env.now() < healed + RECOVERY {
        world.sleep(Duration::from_millis(250)).await;
        whole = world.whole().await;
    }
    let took = world.env.now() - healed;
    match whole {
        Err(why) => violations.push(format!("not whole after {took:?}: {why}\n{}", world.describe().await)),
        Ok(()) => {
            // And it stays so, without a write but the renewals.
            world.sleep(TTL * 2).await;
            let writes = world.seen.lock().unwrap().writes;
            world.sleep(TTL * 2).await;
            if let Err(why) = world.whole().await {
                violations.push(format!("whole no more: {why}\n{}", world.describe().await));
            }
            if world.seen.lock().unwrap().writes != writes {
                violations.push("writes although nothing changes".into());
            }
        }
    }
    violations.extend(world.net.with(|sim| sim.violation().map(ToString::to_string)));
    violations.extend(std::mem::take(&mut world.seen.lock().unwrap().wrong));
    Outcome {
        violations,
        log: world.log(),
        formed: world.told("Formed"),
        healed: took,
    }
}
