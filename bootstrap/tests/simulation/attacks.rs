//! Scenes in virtual time that go for one weak moment each: deadlines, wakes that could be missed, words that come late,
//! and what is none of ours at the store.

use std::time::Duration;

use coord_api::{CoordinatorExt, Expect, Operation};
use coord_bootstrap::{Bootstrap, Config, End, Reason, Reform, State};
use coord_cluster::Input;
use coord_mem::{Fault, GiveUp};

use crate::scenes::{LONG, play};
use crate::world::{REFORM_AFTER, TTL, World};

/// What a step may take beyond its deadline: nothing but the granularity of looking.
const MOMENT: Duration = Duration::from_millis(100);

impl World {
    fn bootstrap(&self, node: usize) -> &Bootstrap {
        self.nodes[node].bootstrap.as_ref().unwrap()
    }

    /// Asks a node to leave; how it ended, and how long that took.
    async fn leave(&self, node: usize, within: Duration) -> (End, Duration) {
        let start = self.env.now();
        let end = self.bootstrap(node).leave(within).await;
        (end, self.env.now() - start)
    }

    /// A node that has won the election, and whose record never arrives although its lease is renewed.
    async fn stuck(&mut self) -> usize {
        // It looks for a record before it writes one: that takes a while.
        self.seen.lock().unwrap().answers_take = Duration::from_millis(200);
        let winner = self.add();
        let holds = async |world: &World| world.oracle.get(&world.key("leader")).await.unwrap().is_some();
        self.until("the leader's entry", holds).await;
        for _ in 0..1000 {
            self.nodes[winner]
                .faults
                .next(Operation::Create, Fault::LoseRequest(GiveUp::AtOnce));
        }
        let forming = async |world: &World| matches!(world.state(winner), State::Forming { .. });
        self.until("forming", forming).await;
        self.seen.lock().unwrap().answers_take = Duration::ZERO;
        winner
    }
}

#[test]
fn forming_ends_within_the_ttl_although_the_lease_is_renewed() {
    play(async |mut world| {
        let winner = world.stuck().await;
        let ended = async |world: &World| !matches!(world.state(winner), State::Forming { .. });
        let took = world.until("the end of forming", ended).await;
        assert!(took <= TTL + MOMENT, "{took:?}");
        assert_eq!(world.told("Formed"), 0);
        // Others need not wait for it any longer.
        let next = world.add();
        let took = world.until("the next", async |world: &World| world.is_in(next)).await;
        assert!(took <= TTL, "{took:?}");
        world.nodes[winner].faults.clear();
        world.until_whole().await;
        world.nothing_wrong();
    });
}

#[test]
fn who_is_forming_leaves_by_its_deadline() {
    play(async |mut world| {
        let winner = world.stuck().await;
        let within = Duration::from_millis(1500);
        let (_, took) = world.leave(winner, within).await;
        assert!(took <= within + MOMENT, "{took:?}");
        assert_eq!(world.told("Formed"), 0);
    });
}

#[test]
fn a_winner_that_stood_still_neither_forms_nor_takes_back_a_record_that_others_build_on() {
    // The answer comes while it stands still; or does not come, and it was about to ask again.
    for fault in [
        Fault::DelayAnswer(Duration::from_millis(500)),
        Fault::LoseAnswer(GiveUp::AtOnce),
    ] {
        play(async |mut world| {
            let winner = world.add();
            world.nodes[winner].faults.next(Operation::Create, Fault::Pass);
            world.nodes[winner].faults.next(Operation::Create, fault);
            let written = async |world: &World| world.record().await.is_some();
            world.until("the record", written).await;
            assert_eq!(world.told("Formed"), 0);
            world.pause(winner, LONG);
            let next = world.add();
            world.until("the next", async |world: &World| world.is_in(next)).await;
            assert_eq!(world.state(next).record().unwrap().generation, 2);
            let second = world.record().await;
            world.nodes[winner].env.resume();
            world.until_whole().await;
            assert_eq!(world.record().await, second, "{fault:?}");
            assert_eq!(world.told("Formed"), 1, "{fault:?}");
            world.nothing_wrong();
        });
    }
}

#[test]
fn a_record_that_changes_during_a_look_at_the_one_before_is_not_missed() {
    play(async |world| {
        let world = world.grown(1).await;
        let key = world.key("cluster");
        let own = world.oracle.get(&key).await.unwrap().unwrap().value;
        let write = async |value: coord_api::Bytes| world.oracle.update(&key, value, Expect::Any).await.unwrap();
        let of = |cluster: &str, generation: u64| {
            coord_api::Bytes::from(format!(r#"{{"cluster":"{cluster}","generation":{generation}}}"#))
        };
        let travel = Duration::from_millis(600);
        world.nodes[0].faults.next(Operation::GetLatest, Fault::Delay(travel));
        world.seen.lock().unwrap().answers_take = travel;
        // It looks who is right, reads that all is well, and meanwhile all is well no longer.
        write(of("abc0000001000001", 1)).await;
        world.sleep(travel / 2).await;
        write(own).await;
        world.sleep(travel).await;
        write(of("abc0000002000002", 2)).await;
        world
            .until("superseded", async |world: &World| world.told("Superseded") == 1)
            .await;
    });
}

#[test]
fn a_rival_is_told_in_time_although_the_store_is_slow() {
    play(async |world| {
        let world = world.grown(1).await;
        let key = world.key("leader");
        let entry = world.oracle.get(&key).await.unwrap().unwrap();
        let grant = world.oracle.grant(LONG * 2).await.unwrap();
        while world
            .oracle
            .get(&key)
            .await
            .unwrap()
            .is_none_or(|now| now.created == entry.created)
        {
            let _ = world.oracle.delete(&entry.key, Expect::Any).await;
            let _ = world.oracle.create_ephemeral(&key, "rival#1", grant.lease).await;
        }
        // It looks for strangers when a ttl is over, and again; the second time that takes until the rival is one.
        let slow = Fault::Delay(Duration::from_millis(1500));
        world.nodes[0].faults.next(Operation::Children, Fault::Pass);
        world.nodes[0].faults.next(Operation::Children, slow);
        let took = world
            .until("a rival", async |world: &World| world.told("Rival") == 1)
            .await;
        assert!(took <= TTL * 2 + Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn a_manager_whose_store_is_silent_leaves_by_its_deadline() {
    play(async |world| {
        let mut world = world.grown(2).await;
        let manager = 0;
        assert!(world.state(manager).is_managing());
        world.nodes[manager].faults.swallow();
        // It has something to write now, and waits for the store.
        let newcomer = world.add();
        world.until("in", async |world: &World| world.is_in(newcomer)).await;
        world.sleep(Duration::from_millis(300)).await;
        let within = Duration::from_millis(1000);
        let (_, took) = world.leave(manager, within).await;
        assert!(took <= within + MOMENT, "{took:?}");
    });
}

#[test]
fn everybody_leaves_by_the_deadline_although_the_store_is_silent() {
    play(async |world| {
        let world = world.grown(4).await;
        world.nodes.iter().for_each(|node| node.faults.swallow());
        let within = Duration::from_secs(5);
        for (end, took) in futures::future::join_all((0..4).map(|node| world.leave(node, within))).await {
            assert!(
                matches!(end, End::Left { .. }) && took <= within + MOMENT,
                "{end:?} {took:?}"
            );
        }
    });
}

#[test]
fn of_two_deadlines_for_leaving_the_earlier_one_counts() {
    play(async |world| {
        let world = world.grown(2).await;
        // Nobody can agree to its leaving.
        world.net.with(|sim| sim.set_group(0, 1));
        let patient = world.leave(0, LONG);
        let hasty = async {
            world.sleep(Duration::from_secs(1)).await;
            world.leave(0, Duration::from_secs(2)).await
        };
        let ((end, took), (_, hasty)) = futures::join!(patient, hasty);
        assert_eq!(end, End::Left { graceful: false });
        assert!(hasty <= Duration::from_secs(2) + MOMENT, "{hasty:?}");
        assert!(took <= Duration::from_secs(3) + MOMENT, "{took:?}");
    });
}

#[test]
fn a_node_that_was_told_to_leave_by_another_leaves_by_its_own_deadline() {
    play(async |world| {
        let world = world.grown(2).await;
        world.net.with(|sim| {
            sim.set_group(0, 1);
            let order = Input::Leave {
                node: None,
                within: LONG,
            };
            sim.input(0, order);
        });
        let leaving = async |world: &World| matches!(world.state(0), State::Leaving);
        world.until("leaving", leaving).await;
        let (end, took) = world.leave(0, Duration::from_secs(2)).await;
        assert_eq!(end, End::Left { graceful: false });
        assert!(took <= Duration::from_secs(2) + MOMENT, "{took:?}");
    });
}

#[test]
fn a_seed_that_cannot_be_removed_holds_nothing_up() {
    play(async |world| {
        let mut world = world.grown(2).await;
        let foreign = world.key("seeds").child("foreign").unwrap();
        for key in [foreign.clone(), foreign.child("below").unwrap()] {
            world.oracle.create_persistent(&key, "none of ours").await.unwrap();
        }
        let newcomer = world.add();
        let advertised = async |world: &World| {
            let key = world.key("seeds").child(format!("sim:{newcomer}")).unwrap();
            world.oracle.get(&key).await.unwrap().is_some()
        };
        world.until("advertised", advertised).await;
        world.sleep(TTL).await;
        let writes = world.seen.lock().unwrap().writes;
        world.sleep(TTL * 3).await;
        assert_eq!(world.seen.lock().unwrap().writes, writes, "it does not try for ever");
        assert_eq!(world.told("StoreFailed"), 0);
    });
}

#[test]
fn what_is_none_of_ours_at_the_store_is_not_built_on() {
    let giant = "x".repeat(100_000);
    for garbage in [
        "",
        "{",
        "null",
        "[]",
        r#"{"cluster":"ü","generation":1}"#,
        r#"{"cluster":"1"}"#,
        &giant,
    ] {
        play(async |mut world| {
            let record = world.key("cluster");
            let entry = world
                .oracle
                .create_persistent(&record, garbage.to_owned())
                .await
                .unwrap();
            let seed = world.key("seeds").child("sim:7").unwrap();
            world.oracle.create_persistent(&seed, garbage.to_owned()).await.unwrap();
            let node = world.add();
            world.sleep(REFORM_AFTER * 2).await;
            let reason = match world.state(node) {
                State::Waiting { reason, .. } => reason,
                state => panic!("{state:?}"),
            };
            assert_eq!(reason, Reason::UnreadableRecord);
            assert_eq!(world.oracle.get(&record).await.unwrap(), Some(entry), "untouched");
            assert_eq!(world.oracle.get(&world.key("leader")).await.unwrap(), None);
            // The person who had to look has looked.
            world.oracle.delete(&record, Expect::Any).await.unwrap();
            world.until_whole().await;
            world.nothing_wrong();
        });
    }
}

#[test]
fn a_newcomer_that_comes_while_the_last_one_leaves_is_in_the_next_cluster_or_in_this_one() {
    for moment in 0..20 {
        play(async |world| {
            let mut world = world.grown(2).await;
            let asked = [0, 1].map(|node| world.bootstrap(node).leave(LONG));
            for leave in asked {
                let _ = tokio::time::timeout(Duration::ZERO, leave).await;
            }
            world.sleep(Duration::from_millis(100) * moment).await;
            let newcomer = world.add();
            let took = world.until_whole().await;
            let log = world.log().join("\n");
            assert!(
                world.is_in(newcomer) && took < TTL * 3 + REFORM_AFTER,
                "{took:?}\n{log}"
            );
            world.nothing_wrong();
        });
    }
}

#[test]
fn who_gave_up_is_in_no_cluster_whatever_it_is_told_later() {
    play(async |world| {
        let mut world = world.grown(1).await;
        // Its welcome is on its way when it gives up.
        world.net.with(|sim| {
            sim.network.min_delay = Duration::from_millis(700);
            sim.network.max_delay = Duration::from_millis(800);
        });
        let config = Config {
            give_up_after: Some(Duration::from_secs(1)),
            ..world.config.clone()
        };
        let newcomer = world.add_with(config);
        let stopped = async |world: &World| world.state(newcomer).is_stopped();
        world.until("given up", stopped).await;
        world.sleep(TTL).await;
        let phase = world.net.with(|sim| sim.core(newcomer).phase());
        assert_eq!(phase, coord_cluster::Phase::Idle);
    });
}

#[test]
fn what_cannot_be_meant_is_refused() {
    play(async |world| {
        let good = world.config.clone();
        let zero = Duration::ZERO;
        for (config, word) in [
            (
                Config {
                    ttl: zero,
                    ..good.clone()
                },
                "ttl",
            ),
            (
                Config {
                    ttl: Duration::MAX,
                    ..good.clone()
                },
                "ttl",
            ),
            (
                Config {
                    max_seeds: 0,
                    ..good.clone()
                },
                "max_seeds",
            ),
            (
                Config {
                    join_timeout: zero,
                    ..good.clone()
                },
                "join_timeout",
            ),
            (
                Config {
                    wait_first: zero,
                    ..good.clone()
                },
                "wait_first",
            ),
            (
                Config {
                    reform: Reform::After(TTL / 2),
                    ..good.clone()
                },
                "reform",
            ),
        ] {
            let node = world.net.node(world.net.add());
            let refused = Bootstrap::start(world.store.client(), node, config)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(word), "{refused}");
        }
    });
}

#[test]
fn a_record_that_somebody_wrote_in_the_meantime_is_never_overwritten() {
    for before in [None, Some(r#"{"cluster":"0000010000000001","generation":1}"#)] {
        play(async |mut world| {
            let key = world.key("cluster");
            if let Some(before) = before {
                world.oracle.create_persistent(&key, before).await.unwrap();
            }
            let node = world.add();
            let electing =
                async |world: &World| matches!(world.state(node), State::Electing { .. } | State::Forming { .. });
            world.seen.lock().unwrap().answers_take = Duration::from_millis(400);
            world.until("electing", electing).await;
            let forming = async |world: &World| matches!(world.state(node), State::Forming { .. });
            world.until("forming", forming).await;
            // What it has read of the record is on its way to it, and no longer true.
            let other = r#"{"cluster":"abc0000005000005","generation":5}"#;
            match before {
                None => world.oracle.create_persistent(&key, other).await.map(drop).unwrap(),
                Some(_) => world
                    .oracle
                    .update(&key, other.into(), Expect::Any)
                    .await
                    .map(drop)
                    .unwrap(),
            }
            let over = async |world: &World| !matches!(world.state(node), State::Forming { .. });
            world.until("the end of forming", over).await;
            let now = world.oracle.get(&key).await.unwrap().unwrap();
            assert_eq!(now.value, other);
            assert_eq!(world.told("Formed"), 0);
        });
    }
}

#[test]
fn who_leaves_is_first_no_contact_then_no_member_and_only_the_last_one_takes_the_record() {
    play(async |world| {
        let world = world.grown(3).await;
        let seed = world.key("seeds").child("sim:0").unwrap();
        let mut asked = Box::pin(world.leave(0, LONG));
        let mut was_contact = true;
        while futures::future::poll_immediate(&mut asked).await.is_none() {
            assert!(world.record().await.is_some(), "others are still there");
            let contact = world.oracle.get(&seed).await.unwrap().is_some();
            let member = world.net.with(|sim| sim.core(0).phase()) == coord_cluster::Phase::Member;
            assert!(member || !contact, "a contact that is no member");
            was_contact &= contact;
            world.sleep(Duration::from_millis(1)).await;
        }
        assert!(!was_contact, "the own entry goes before the end");
    });
    play(async |world| {
        let world = world.grown(1).await;
        let mut asked = Box::pin(world.leave(0, LONG));
        while futures::future::poll_immediate(&mut asked).await.is_none() {
            let held = world.oracle.get(&world.key("leader")).await.unwrap().is_some();
            assert!(
                held || world.record().await.is_none(),
                "a record, and nobody in the way of others"
            );
            world.sleep(Duration::from_millis(1)).await;
        }
        assert!(world.whole().await.is_ok(), "{}", world.describe().await);
    });
}

impl World {
    /// A node that hears nothing of the cluster on record, and has for the better part of the time after which it may form
    /// the next one.
    async fn listening(&mut self) -> usize {
        let record = r#"{"cluster":"abc0000001000001","generation":1}"#;
        self.oracle
            .create_persistent(&self.key("cluster"), record)
            .await
            .unwrap();
        let node = self.add();
        self.sleep(REFORM_AFTER * 3 / 4).await;
        assert_eq!(self.told("Formed"), 0);
        node
    }

    /// From now on it has to listen all over again.
    async fn listens_anew(&self) {
        let took = self
            .until("the next generation", async |world: &World| world.told("Formed") == 1)
            .await;
        assert!(took >= REFORM_AFTER, "only {took:?} after something was heard");
    }
}

#[test]
fn while_the_store_is_away_nobody_knows_who_was_heard() {
    play(async |mut world| {
        let node = world.listening().await;
        world.nodes[node].faults.next(Operation::Get, Fault::NotSent);
        let failed = async |world: &World| world.nodes[node].faults.met().values().sum::<u64>() > 0;
        world.until("a read that fails", failed).await;
        world.listens_anew().await;
    });
}

#[test]
fn who_holds_the_leaders_entry_between_two_looks_is_heard() {
    play(async |mut world| {
        world.listening().await;
        let (key, grant) = (world.key("leader"), world.oracle.grant(TTL).await.unwrap());
        world
            .oracle
            .create_ephemeral(&key, "somebody", grant.lease)
            .await
            .unwrap();
        world.oracle.revoke(grant.lease).await.unwrap();
        world.listens_anew().await;
    });
}

#[test]
fn a_record_that_somebody_deletes_is_restored_as_it_was() {
    play(async |world| {
        let world = world.grown(2).await;
        let record = world.record().await;
        world.oracle.delete(&world.key("cluster"), Expect::Any).await.unwrap();
        let restored = async |world: &World| world.record().await == record;
        world.until("the record is back", restored).await;
        assert_eq!(world.told("Formed"), 1);
        world.nothing_wrong();
    });
}
