//! Single scenes in virtual time: one for each lesson that other bootstraps paid for.

use std::time::Duration;

use coord_api::{CoordinatorExt, Env, Expect, Key, Operation};
use coord_bootstrap::{Config, End, Reason, Reform, State};
use coord_cluster::sim::Network;
use coord_mem::{Fault, GiveUp};

use crate::witness::cluster_in;
use crate::world::{REFORM_AFTER, TTL, World, in_virtual_time};

/// Longer than anything that is to happen takes.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) fn play(scene: impl AsyncFnOnce(World)) {
    in_virtual_time(async { scene(World::new(Env::simulated(1), Network::default())).await });
}

impl World {
    /// Waits until it is so; how long that took.
    pub(crate) async fn until(&self, what: &str, mut so: impl AsyncFnMut(&World) -> bool) -> Duration {
        let start = self.env.now();
        while !so(self).await {
            if self.env.now() > start + LONG {
                panic!("not so: {what}\n{}\n{}", self.describe().await, self.log().join("\n"));
            }
            self.sleep(Duration::from_millis(20)).await;
        }
        self.env.now() - start
    }

    pub(crate) async fn until_whole(&self) -> Duration {
        self.until("whole", async |world: &World| world.whole().await.is_ok())
            .await
    }

    pub(crate) fn state(&self, node: usize) -> State {
        self.nodes[node].bootstrap.as_ref().unwrap().state()
    }

    pub(crate) fn is_in(&self, node: usize) -> bool {
        self.state(node).record().is_some()
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        self.config.prefix.child(name).unwrap()
    }

    pub(crate) async fn record(&self) -> Option<String> {
        let entry = self.oracle.get(&self.key("cluster")).await.unwrap();
        entry.and_then(|entry| cluster_in(&entry.value))
    }

    /// So many nodes, whole.
    pub(crate) async fn grown(mut self, size: usize) -> World {
        for _ in 0..size {
            self.add();
        }
        self.until_whole().await;
        self
    }

    pub(crate) fn nothing_wrong(&self) {
        let seen = self.seen.lock().unwrap();
        assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    }
}

#[test]
fn a_winner_killed_before_it_wrote_the_record_is_followed_after_the_ttl() {
    play(async |mut world| {
        let winner = world.add();
        // Its create of the record is on its way for ever.
        let endless = Fault::Delay(Duration::from_secs(3600));
        for _ in 0..2 {
            world.nodes[winner].faults.next(Operation::GetLatest, endless);
        }
        let forming = async |world: &World| matches!(world.state(0), State::Forming { .. });
        world.until("forming", forming).await;
        world.crash(winner);
        let next = world.add();
        let took = world
            .until("the next one", async |world: &World| world.is_in(next))
            .await;
        assert!(took >= TTL / 2 && took < TTL * 2 + Duration::from_secs(6), "{took:?}");
        world.nothing_wrong();
    });
}

#[test]
fn a_winner_killed_after_it_wrote_the_record_is_followed_when_the_cluster_was_given_up() {
    play(async |mut world| {
        let winner = world.add();
        let written = async |world: &World| world.record().await.is_some();
        world.until("the record", written).await;
        world.crash(winner);
        world.oracle.delete_recursive(&world.key("seeds")).await.ok();
        let next = world.add();
        let took = world
            .until("the next one", async |world: &World| world.is_in(next))
            .await;
        assert!(
            took >= REFORM_AFTER && took < REFORM_AFTER + TTL * 2 + Duration::from_secs(12),
            "{took:?}"
        );
        assert_eq!(world.state(next).record().unwrap().generation, 2);
        world.nothing_wrong();
    });
}

#[test]
fn a_node_never_joins_by_its_own_old_entry() {
    play(async |mut world| {
        let only = world.add();
        world.until_whole().await;
        let old = world.record().await;
        // Its old entry is all that is advertised, under its very address.
        world.restart(only);
        world.sleep(REFORM_AFTER).await;
        assert!(!world.is_in(only), "{:?}", world.state(only));
        world.until_whole().await;
        assert_ne!(world.record().await, old, "another generation, not the old island");
        world.nothing_wrong();
    });
}

#[test]
fn stale_seeds_cost_a_deadline_each_and_are_read_again_on_every_attempt() {
    play(async |mut world| {
        let first = world.add();
        world.until_whole().await;
        let record = world.record().await.unwrap();
        // Nobody corrects the seeds now, and the live one is gone from them.
        world.nodes[first].faults.swallow();
        world.sleep(TTL * 2).await;
        world
            .oracle
            .delete(&world.key("seeds").child("sim:0").unwrap(), Expect::Any)
            .await
            .unwrap();
        for port in 50..53 {
            let value = format!(r#"{{"node":"sim:{port}","incarnation":1,"cluster":"{record}"}}"#);
            let key = world.key("seeds").child(format!("sim:{port}")).unwrap();
            world.oracle.create_persistent(&key, value).await.unwrap();
        }
        let next = world.add();
        let asked_all = async |world: &World| matches!(world.state(next), State::Waiting { .. });
        let took = world.until("all were asked", asked_all).await;
        let each = world.config.join_timeout;
        assert!(took >= each * 3 && took < each * 3 + Duration::from_secs(1), "{took:?}");
        // Only now a live one appears.
        let value = format!(r#"{{"node":"sim:0","incarnation":1,"cluster":"{record}"}}"#);
        let key = world.key("seeds").child("sim:0").unwrap();
        world.oracle.create_persistent(&key, value).await.unwrap();
        world.until("in", async |world: &World| world.is_in(next)).await;
        assert_eq!(world.record().await, Some(record));
    });
}

#[test]
fn a_redeploy_beside_a_partition_forms_no_second_cluster_while_the_first_is_heard_of() {
    play(async |world| {
        let mut world = world.grown(3).await;
        let record = world.record().await;
        // The newcomers reach the store, but not the cluster, which keeps holding the leader's entry.
        let config = world.config.clone();
        let newcomers = [world.add_with(config.clone()), world.add_with(config)];
        world
            .net
            .with(|sim| newcomers.iter().for_each(|node| sim.set_group(*node, 1)));
        for node in newcomers {
            world.restart(node);
        }
        world.sleep(REFORM_AFTER * 3).await;
        assert!(newcomers.iter().all(|node| !world.is_in(*node)));
        assert_eq!(world.record().await, record);
        world.net.with(|sim| sim.heal());
        world.until_whole().await;
        world.nothing_wrong();
    });
}

#[test]
fn a_formed_cluster_outlives_the_store_and_advertises_again() {
    play(async |world| {
        let world = world.grown(4).await;
        let record = world.record().await;
        world.nodes.iter().for_each(|node| node.faults.swallow());
        for _ in 0..60 {
            world.sleep(TTL).await;
            let whole = world.net.with(|sim| sim.converged());
            assert!(
                whole && (0..4).all(|node| world.is_in(node)),
                "{}",
                world.describe().await
            );
        }
        assert_eq!(world.oracle.get(&world.key("leader")).await.unwrap(), None);
        // As if that were not enough, the store comes back empty.
        world.oracle.delete_recursive(&world.config.prefix).await.unwrap();
        world.nodes.iter().for_each(|node| node.faults.heal());
        world.until_whole().await;
        assert_eq!(world.record().await, record, "the same cluster");
        world.nothing_wrong();
    });
}

#[test]
fn an_empty_seeds_folder_is_filled_again() {
    play(async |world| {
        let world = world.grown(3).await;
        world.oracle.delete_recursive(&world.key("seeds")).await.unwrap();
        let took = world.until_whole().await;
        assert!(took < Duration::from_secs(3), "{took:?}");
    });
}

#[test]
fn a_crashed_cluster_leader_does_not_stall_the_manager() {
    play(async |world| {
        let mut world = world.grown(4).await;
        // Nobody is put down by anybody: the dead stay members, unreachable.
        world.config.down_after = None;
        for node in 0..4 {
            world.restart(node);
            world.sleep(Duration::from_secs(30)).await;
        }
        world
            .until("a manager", async |world: &World| world.state(0).is_managing())
            .await;
        world.crash(0);
        world
            .until("the next manager", async |world: &World| world.state(1).is_managing())
            .await;
        let still = world.net.with(|sim| {
            sim.core(1)
                .view()
                .members
                .iter()
                .any(|member| member.node.address.port() == 0)
        });
        assert!(still, "it was not removed");
        // And somebody new gets in all the same.
        let next = world.add();
        world.until("in", async |world: &World| world.is_in(next)).await;
    });
}

#[test]
fn an_outdated_cluster_without_a_store_stops_when_it_can_be_heard_by_the_newer_one() {
    play(async |world| {
        let mut world = world.grown(4).await;
        let old = world.record().await;
        // Two are cut off from everything; the other two are redeployed and form the next generation.
        world
            .net
            .with(|sim| [0, 1].into_iter().for_each(|node| sim.set_group(node, 1)));
        for node in [0, 1] {
            world.nodes[node].faults.swallow();
        }
        for node in [2, 3] {
            world.crash(node);
        }
        world.sleep(TTL * 2).await;
        for node in [2, 3] {
            world.restart(node);
        }
        world
            .until("the next generation", async |world: &World| {
                world.is_in(2) && world.is_in(3)
            })
            .await;
        assert_ne!(world.record().await, old);
        assert!(world.is_in(0) && world.is_in(1), "the old one lives on");
        // The network heals, the store does not.
        world.net.with(|sim| sim.heal());
        world
            .until("the old one stops", async |world: &World| {
                !world.is_in(0) && !world.is_in(1)
            })
            .await;
        for node in [0, 1] {
            world.nodes[node].faults.heal();
        }
        world.until_whole().await;
        world.nothing_wrong();
    });
}

#[test]
fn an_outdated_cluster_stops_when_it_reads_the_newer_record() {
    play(async |world| {
        let mut world = world.grown(4).await;
        world
            .net
            .with(|sim| [0, 1].into_iter().for_each(|node| sim.set_group(node, 1)));
        for node in [0, 1] {
            world.nodes[node].faults.swallow();
        }
        for node in [2, 3] {
            world.crash(node);
        }
        world.sleep(TTL * 2).await;
        for node in [2, 3] {
            world.restart(node);
        }
        world
            .until("the next generation", async |world: &World| {
                world.is_in(2) && world.is_in(3)
            })
            .await;
        // The store heals, the network does not.
        for node in [0, 1] {
            world.nodes[node].faults.heal();
        }
        world
            .until("the old one stops", async |world: &World| {
                !world.is_in(0) && !world.is_in(1)
            })
            .await;
        world.net.with(|sim| sim.heal());
        world.until_whole().await;
        world.nothing_wrong();
    });
}

#[test]
fn two_halves_that_have_put_each_other_down_find_together_again() {
    play(async |world| {
        let world = world.grown(4).await;
        world
            .net
            .with(|sim| [0, 1].into_iter().for_each(|node| sim.set_group(node, 1)));
        // First one half holds the leader's entry and puts the other down, then the other way round.
        world
            .until("half", async |world: &World| world.told("Downed") == 1)
            .await;
        for node in [0, 1] {
            world.nodes[node].faults.swallow();
        }
        world
            .until("the other half", async |world: &World| world.told("Downed") == 2)
            .await;
        for node in [0, 1] {
            world.nodes[node].faults.heal();
        }
        world.net.with(|sim| sim.heal());
        world.until_whole().await;
        world.nothing_wrong();
    });
}

#[test]
fn all_killed_and_started_again_at_their_addresses_are_one_cluster_again() {
    play(async |world| {
        let mut world = world.grown(5).await;
        (0..5).for_each(|node| world.crash(node));
        (0..5).for_each(|node| world.restart(node));
        let took = world.until_whole().await;
        assert!(took < REFORM_AFTER + TTL * 2 + Duration::from_secs(15), "{took:?}");
        world.nothing_wrong();
    });
}

#[test]
fn everybody_leaving_at_once_leaves_nothing_behind() {
    play(async |world| {
        let world = world.grown(5).await;
        let all = world
            .nodes
            .iter()
            .map(|node| node.bootstrap.as_ref().unwrap().leave(LONG));
        for end in futures::future::join_all(all).await {
            assert_eq!(end, End::Left { graceful: true });
        }
        assert!(world.whole().await.is_ok(), "{}", world.describe().await);
        world.nothing_wrong();
    });
}

#[test]
fn who_only_joins_waits_for_ever_and_who_may_not_reform_does_not() {
    play(async |mut world| {
        let config = world.config.clone();
        let joins = world.add_with(Config {
            join_only: true,
            ..config.clone()
        });
        world.sleep(LONG).await;
        assert!(matches!(
            world.state(joins),
            State::Waiting {
                reason: Reason::NothingToJoin,
                ..
            }
        ));
        let first = world.add();
        world.until_whole().await;
        world.crash(joins);
        world.crash(first);
        let never = world.add_with(Config {
            reform: Reform::Never,
            ..config
        });
        world.sleep(LONG).await;
        assert!(
            matches!(world.state(never), State::Waiting { .. }),
            "{:?}",
            world.state(never)
        );
    });
}

#[test]
fn what_an_abandoned_attempt_was_told_late_changes_nothing() {
    play(async |mut world| {
        world.add();
        world.until_whole().await;
        let next = world.net.add();
        // The answers to its joins come when the attempts are over.
        world.net.with(|sim| {
            sim.network.min_delay = Duration::from_millis(1600);
            sim.network.max_delay = Duration::from_millis(1700);
        });
        let config = world.config.clone();
        let slow = Config {
            join_timeout: Duration::from_millis(500),
            ..config
        };
        let node = world.begin_with(next, slow);
        world.nodes.push(node);
        world.sleep(Duration::from_secs(20)).await;
        world.net.with(|sim| sim.network = Network::default());
        world.until_whole().await;
        assert_eq!(world.told("Formed"), 1);
        world.nothing_wrong();
    });
}

#[test]
fn unknown_outcomes_of_every_write_of_the_first_seed_are_settled() {
    for fault in [
        Fault::LoseAnswer(GiveUp::AtOnce),
        Fault::LoseRequest(GiveUp::AtOnce),
        Fault::ArriveLate(GiveUp::AtOnce, Duration::from_millis(300)),
        Fault::NotSent,
    ] {
        play(async |mut world| {
            let only = world.add();
            for operation in [
                Operation::Grant,
                Operation::Create,
                Operation::Create,
                Operation::Create,
            ] {
                world.nodes[only].faults.next(operation, fault);
            }
            world.until_whole().await;
            assert_eq!(world.told("Formed"), 1, "{fault:?}");
            world.nothing_wrong();
        });
    }
}

#[test]
fn a_hundred_nodes_started_at_once_are_one_cluster() {
    play(async |world| {
        let world = world.grown(100).await;
        assert_eq!(world.told("Formed"), 1);
        // Once formed, it costs the store the renewals of one lease, whatever its size.
        let writes = world.seen.lock().unwrap().store_writes;
        world.sleep(TTL * 10).await;
        let per_ttl = (world.seen.lock().unwrap().store_writes - writes) as f64 / 10.0;
        assert!((2.5..=3.5).contains(&per_ttl), "{per_ttl} writes per ttl");
        world.nothing_wrong();
    });
}
