use std::time::Duration;

use coord_harness::{Direction, Flow, Proxy};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::{Fault, Server, Step, Way, expire, quota};
use crate::history::What;
use crate::stage::{Cast, Cluster, Scribe};

/// How much of a ttl slow answers take. A renewal on etcd takes three of them, and has a sixth of the ttl.
const SLOW: u32 = 24;
/// Nobody may lead at all. A leader's lease is renewed every third of its ttl.
const RENEWAL: Duration = Duration::from_secs(8);

/// Breaks things, and mends them.
pub struct Nemesis<'a> {
    /// The servers.
    pub cluster: &'a Cluster,
    /// The clients.
    pub cast: &'a mut Cast,
    /// Where it is written down.
    pub scribe: &'a Scribe,
    /// The time to live of the clients' leases.
    pub ttl: Duration,
}

impl Nemesis<'_> {
    /// One fault from beginning to end.
    pub async fn play(&mut self, number: usize, step: Step) {
        sleep(step.after).await;
        if step.fault == Fault::Replace {
            // Who is wiped must be able to learn again from a majority that remembers.
            self.cluster.wait_ready().await;
        }
        // Silence after a renewal tells something only of somebody who leads.
        let slow = matches!(step.fault, Fault::Way(Way::SlowThenSilent));
        let client = match self.leading() {
            Some(leading) if slow || step.renewed => leading,
            _ => self.client(step.pick),
        };
        if step.renewed {
            self.renewal(|_| true).await;
        }
        let begin = |target: String| {
            self.scribe.say(
                "nemesis",
                What::Fault {
                    number,
                    name: step.fault.to_string(),
                    target,
                    trouble: step.fault.trouble(),
                },
            );
        };
        let servers = match step.fault {
            Fault::Kill(which) | Fault::Pause(which) | Fault::Restart(which) | Fault::Partition(which) => {
                self.servers(which, step.pick).await
            }
            Fault::Replace | Fault::OneServer(_) => self.servers(Server::Follower, step.pick).await,
            _ => vec![],
        };
        let name = self.cast.actors[client].name.clone();
        match step.fault {
            Fault::Kill(_) | Fault::Pause(_) | Fault::Restart(_) | Fault::Partition(_) | Fault::Replace => {
                begin(names(&servers));
                self.on_servers(step, &servers).await;
                self.make_room().await;
            }
            Fault::OneServer(way) => {
                begin(names(&servers));
                self.on_ways(way, step.hold, |_, server| servers.contains(&server))
                    .await;
            }
            Fault::AllWays(way) => {
                begin("all".into());
                self.on_ways(way, step.hold, |_, _| true).await;
            }
            Fault::Way(way) => {
                begin(name);
                self.on_ways(way, step.hold, |actor, _| actor == client).await;
            }
            Fault::CutToTheEnd => {
                begin(name);
                self.cast.actors[client].ways.iter().for_each(Proxy::cut);
                sleep(step.hold / 2).await;
                self.cast.quiet().await;
                sleep(step.hold / 2).await;
                self.cast.actors[client].ways.iter().for_each(Proxy::pass);
            }
            Fault::KillClient => {
                begin(name);
                self.cast.kill(client).await;
                sleep(step.hold).await;
                self.cast.begin(client);
            }
            Fault::PauseClient => {
                begin(name);
                self.cast.actors[client].signal(Signal::STOP);
                sleep(step.hold).await;
                self.cast.actors[client].signal(Signal::CONT);
            }
            Fault::RestartClient => {
                begin(name);
                if let Err(why) = self.cast.close(client).await {
                    self.scribe.say("nemesis", What::Left { what: why });
                }
                self.cast.begin(client);
            }
            Fault::Transfer | Fault::Compact | Fault::Full | Fault::Revoke => {
                begin("store".into());
                self.on_store(step).await;
            }
        }
        self.scribe.say("nemesis", What::Healed { number });
    }

    async fn on_servers(&mut self, step: Step, servers: &[usize]) {
        let cluster = self.cluster;
        match step.fault {
            Fault::Kill(_) => {
                servers.iter().for_each(|server| cluster.nodes()[*server].kill());
                sleep(step.hold).await;
                servers.iter().for_each(|server| cluster.restart(*server));
            }
            Fault::Pause(_) => {
                servers.iter().for_each(|server| cluster.nodes()[*server].pause());
                sleep(step.hold).await;
                servers.iter().for_each(|server| cluster.nodes()[*server].resume());
                return;
            }
            Fault::Restart(_) => {
                for server in servers {
                    cluster.nodes()[*server].stop().await;
                    cluster.restart(*server);
                }
            }
            Fault::Partition(_) => {
                servers.iter().for_each(|server| cluster.isolate(*server));
                sleep(step.hold).await;
                cluster.rejoin();
                return;
            }
            _ => {
                for server in servers {
                    self.noted(cluster.replace(*server).await);
                }
            }
        }
        // What was started serves again: only then is it over.
        cluster.wait_ready().await;
    }

    async fn on_ways(&self, way: Way, hold: Duration, whose: impl Fn(usize, usize) -> bool) {
        let mut ways: Vec<&Proxy> = vec![];
        for (number, actor) in self.cast.actors.iter().enumerate() {
            let of_it = actor.ways.iter().enumerate();
            ways.extend(of_it.filter(|(server, _)| whose(number, *server)).map(|(_, way)| way));
        }
        let each = |doing: fn(&Proxy)| ways.iter().for_each(|way| doing(way));
        match way {
            Way::Cut => each(Proxy::cut),
            Way::HalfOpen => each(Proxy::black_hole),
            Way::Delay => each(|way| way.delay(Duration::from_millis(150))),
            Way::SlowThenSilent => {
                ways.iter()
                    .for_each(|way| way.set(Direction::ToClient, Flow::Delay(self.ttl / SLOW)));
                // A renewal that ends after this has begun after it: all its answers are late.
                sleep(self.ttl / SLOW * 3).await;
                self.renewal(|who| whose(self.number(who), 0)).await;
                each(Proxy::black_hole);
            }
            Way::DropAnswers => each(Proxy::drop_answers),
            Way::LateRequests => each(Proxy::hold_requests),
            Way::Reset => {
                let pause = Duration::from_millis(250);
                for _ in 0..hold.as_millis() / pause.as_millis() {
                    each(Proxy::reset);
                    sleep(pause).await;
                }
                return;
            }
        }
        sleep(hold).await;
        each(Proxy::pass);
    }

    /// A member that came back, or learned everything anew, may find the store too full and say so for all, long after
    /// somebody filled it: nobody but the operator can heal that.
    async fn make_room(&self) {
        let Cluster::Etcd(etcd) = self.cluster else { return };
        while let Err(why) = quota::clear_if_full(etcd).await {
            self.noted(Err(why));
            sleep(Duration::from_millis(300)).await;
        }
    }

    async fn on_store(&self, step: Step) {
        let Cluster::Etcd(etcd) = self.cluster else {
            return self.revoke().await;
        };
        match step.fault {
            Fault::Transfer => {
                let to = self.servers(Server::Follower, step.pick).await;
                self.noted(etcd.move_leader(to[0]).await);
            }
            Fault::Compact => self.noted(etcd.compact().await),
            Fault::Full => {
                self.noted(quota::fill(etcd).await);
                sleep(step.hold.min(Duration::from_secs(3))).await;
                // Again until it works: nobody but the operator can heal this.
                while let Err(why) = quota::clear(etcd).await {
                    self.noted(Err(why));
                    sleep(Duration::from_millis(300)).await;
                }
            }
            _ => self.revoke().await,
        }
    }

    /// Ends the lease of whoever leads.
    async fn revoke(&self) {
        let lease = self.scribe.latest(|line| match &line.what {
            What::Valid { leadership, .. } => Some(leadership.lease),
            _ => None,
        });
        let Some(lease) = lease else { return };
        // From now on, not from the answer: it may take effect at any moment in between.
        self.scribe.say("nemesis", What::Revoked { lease });
        self.noted(match self.cluster {
            Cluster::Etcd(etcd) => {
                let lease = format!("{lease:x}");
                etcd.try_etcdctl(&["lease", "revoke", &lease]).await.map(drop)
            }
            Cluster::ZooKeeper(zookeeper) => expire::expire(zookeeper, lease)
                .await
                .map_err(|error| error.to_string()),
        });
    }

    /// Waits until the leadership of one of these is extended.
    async fn renewal(&self, of: impl Fn(&str) -> bool) {
        let newest = || {
            self.scribe.latest(|line| match &line.what {
                What::Valid { leadership, until } if of(&line.who) => Some((leadership.lease, *until)),
                _ => None,
            })
        };
        let end = Instant::now() + RENEWAL.max(self.ttl / 2);
        let before = newest();
        while Instant::now() < end {
            match (before, newest()) {
                (Some((lease, before)), Some((now, until))) if lease == now && until > before => return,
                (None, Some(_)) => return,
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// The client who was seen to lead last, if it still lives.
    fn leading(&self) -> Option<usize> {
        let who = self.scribe.latest(|line| match &line.what {
            What::Valid { .. } => Some(line.who.clone()),
            _ => None,
        })?;
        self.cast.actors.iter().position(|actor| actor.who() == who)
    }

    /// Of which actor this is a life.
    fn number(&self, who: &str) -> usize {
        let name = who.split('.').next().unwrap_or_default();
        let found = self.cast.actors.iter().position(|actor| actor.name == name);
        found.unwrap_or(usize::MAX)
    }

    async fn servers(&self, which: Server, pick: u64) -> Vec<usize> {
        let count = self.cluster.nodes().len();
        let leader = self.cluster.leader().await;
        if count == 1 {
            return vec![leader];
        }
        let next = (leader + 1 + usize::try_from(pick % 2).unwrap_or_default()) % count;
        match which {
            Server::Leader => vec![leader],
            Server::Follower => vec![next],
            Server::Majority if pick.is_multiple_of(3) => (0..count).filter(|server| *server != leader).collect(),
            Server::Majority => vec![leader, next],
        }
    }

    /// One that is not bare.
    fn client(&self, pick: u64) -> usize {
        let ours = self
            .cast
            .actors
            .iter()
            .filter(|actor| actor.name.starts_with('c'))
            .count();
        usize::try_from(pick % ours.max(1) as u64).unwrap_or_default()
    }

    fn noted(&self, result: Result<(), String>) {
        if let Err(text) = result {
            self.scribe.say("nemesis", What::Note { text });
        }
    }
}

fn names(servers: &[usize]) -> String {
    let names: Vec<String> = servers.iter().map(|server| format!("s{server}")).collect();
    names.join("+")
}
