//! Being in the cluster: following the record, and managing the seeds when it is this node's turn.

use std::time::Duration;

use coord_api::{Entry, Instant, Target};
use coord_cluster::{ClusterView, MemberState, MemberView, NodeId, Phase};
use futures::StreamExt;

use crate::follow::Follow;
use crate::office::{Held, Seeking};
use crate::run::{Runner, asked};
use crate::unreachable::Unreachable;
use crate::{Event, Record, State};

/// The wait before a duty that failed is tried again; a random part of up to half is taken off.
const AGAIN: Duration = Duration::from_secs(1);

/// How being in the cluster ended.
pub(crate) enum Exit {
    /// This node was asked to leave, by its user or (no deadline given) by another member.
    Leave {
        deadline: Option<Instant>,
        held: Option<Box<Held>>,
    },
    /// Another cluster has taken the place of this one.
    Superseded,
    /// The cluster goes on without this node.
    Expelled,
    /// The node has stopped.
    NodeStopped,
}

/// Where this node stands towards the leader's entry.
enum Office {
    Vacant,
    Seeking(Box<Seeking>),
    Held(Box<Held>),
}

/// What the loop knows beside the view.
struct Member {
    record: Record,
    office: Office,
    recorded: Follow,
    /// What `recorded` told last. Read once before each look: what comes during it wakes the loop again.
    told: Option<Vec<Entry>>,
    /// Followed while holding the leader's entry.
    seeds: Option<Follow>,
    unreachable: Unreachable,
    /// Whether the seeds may differ from what they should be.
    stale: bool,
    /// The view that the seeds were compared with.
    compared: Option<ClusterView>,
    /// After a failure: not before.
    not_before: Option<Instant>,
}

/// The first reachable member that is up, in the order of addresses: it keeps the seeds. When all who were up are gone, the
/// first of those that wait to be.
fn manager(view: &ClusterView) -> Option<&NodeId> {
    let waits = |member: &&MemberView| member.reachable && member.state == MemberState::Joining;
    let first = view.up().next().or_else(|| view.members.iter().find(waits));
    first.map(|member| &member.node)
}

impl Runner {
    /// Stays as long as the cluster is the right one and has this node in it. Nothing here is needed for the cluster to
    /// live: a store that is away only stops the advertising.
    pub(crate) async fn serve(&mut self, record: Record, held: Option<Box<Held>>) -> Exit {
        let mut member = Member {
            record,
            office: held.map_or(Office::Vacant, Office::Held),
            recorded: Follow::start(&self.coordinator, Target::Key(self.keys.record.clone())),
            told: None,
            seeds: None,
            unreachable: Unreachable::default(),
            stale: true,
            compared: None,
            not_before: None,
        };
        if matches!(member.office, Office::Held(_)) {
            self.shared.tell(Event::Managing);
        }
        let exit = self.stay(&mut member).await;
        metrics::gauge!("coord_bootstrap_managing").set(0.0);
        let held = self.vacate(
            &mut member,
            "left the cluster",
            matches!(exit, Some(Exit::Leave { .. })),
        );
        match exit {
            Some(Exit::Leave { deadline, .. }) => Exit::Leave { deadline, held },
            Some(exit) => exit,
            None => Exit::Expelled,
        }
    }

    /// Looks at everything again after whatever change, until there is a reason to go; `None`: expelled.
    async fn stay(&mut self, member: &mut Member) -> Option<Exit> {
        let mut changes = self.cluster.changes();
        loop {
            let view = self.cluster.view();
            if view.phase == Phase::Stopped {
                return Some(Exit::NodeStopped);
            }
            if view.phase != Phase::Member || view.cluster != member.record.cluster {
                return None;
            }
            let me = view.self_member()?;
            if matches!(me.state, MemberState::Leaving | MemberState::Exiting) {
                return Some(Exit::Leave {
                    deadline: None,
                    held: None,
                });
            }
            let mut leave = self.leave.clone();
            let since = self.env.now();
            tokio::select! {
                biased;
                // A store that does not answer keeps nobody from leaving.
                deadline = asked(&mut leave) => return Some(Exit::Leave { deadline: Some(deadline), held: None }),
                exit = self.look_after(member, &view) => if exit.is_some() {
                    return exit;
                },
            }
            let env = self.env.clone();
            let due = self.due(member, since);
            let seeds = async {
                match &mut member.seeds {
                    Some(seeds) => seeds.changed().await,
                    None => std::future::pending().await,
                }
            };
            let office = progress(&mut member.office, &env);
            let wake = tokio::select! {
                biased;
                deadline = asked(&mut leave) => return Some(Exit::Leave { deadline: Some(deadline), held: None }),
                changed = changes.next() => match changed {
                    Some(()) => Wake::Look,
                    None => return Some(Exit::NodeStopped),
                },
                () = member.recorded.changed() => Wake::Look,
                step = office => Wake::Office(step),
                () = seeds => Wake::Seeds,
                () = sleep(&env, due) => Wake::Look,
            };
            self.hear(member, wake);
        }
    }

    /// One look at everything, and what follows from it.
    async fn look_after(&mut self, member: &mut Member, view: &ClusterView) -> Option<Exit> {
        member.told = member.recorded.latest();
        if self.is_superseded(member, view).await {
            return Some(Exit::Superseded);
        }
        self.take_or_give_up(member, view);
        let exit = self.manage(member, view).await;
        self.show(member);
        exit
    }

    fn hear(&mut self, member: &mut Member, wake: Wake) {
        match wake {
            Wake::Look => {}
            Wake::Seeds => member.stale = true,
            Wake::Office(Step::Seen) => {}
            Wake::Office(Step::Elected(leadership)) => {
                self.answered();
                if let Office::Seeking(seeking) = std::mem::replace(&mut member.office, Office::Vacant) {
                    member.office = Office::Held(Box::new(seeking.elected(leadership)));
                    member.stale = true;
                    member.not_before = None;
                    self.shared.tell(Event::Managing);
                }
            }
            Wake::Office(Step::Failed(error)) => {
                self.failed(&error);
                self.vacate(member, &error.to_string(), false);
                member.not_before = Some(self.later());
            }
            Wake::Office(Step::Lost(why)) => {
                self.vacate(member, &why, false);
            }
        }
    }

    /// Whether another cluster has taken the place of this one: as the store says, or as another cluster's node said.
    async fn is_superseded(&mut self, member: &mut Member, view: &ClusterView) -> bool {
        if view.foreign.iter().any(|other| member.record.is_outdated_by(*other)) {
            return true;
        }
        let Some(other) = other_record(member) else {
            return false;
        };
        if other.generation > member.record.generation {
            return true;
        }
        // Either the prefix was cleared and began anew, or this word is older than this cluster.
        let latest = self.coordinator.get_latest(&self.keys.record).await;
        let latest = latest.map(|entry| entry.and_then(|entry| Record::parse(&entry.value)));
        match latest {
            Ok(latest) => latest.is_some_and(|latest| latest.cluster != member.record.cluster),
            Err(error) => {
                self.failed(&error);
                member.not_before = Some(self.later());
                false
            }
        }
    }

    /// Seeks the leader's entry when it is this node's turn; gives it back when it is another's.
    fn take_or_give_up(&mut self, member: &mut Member, view: &ClusterView) {
        let mine = manager(view) == Some(&view.self_node);
        match &member.office {
            Office::Vacant if mine && self.is_time(member) => {
                let me = &view.self_node;
                match Seeking::start(&self.coordinator, &self.config, &self.keys.leader, me) {
                    Ok(seeking) => member.office = Office::Seeking(Box::new(seeking)),
                    Err(error) => {
                        self.failed(&error);
                        member.not_before = Some(self.later());
                    }
                }
            }
            // Told to stop is told for good: a renewal that comes later does not undo it, so it begins anew.
            Office::Held(held) if !held.is_valid() => {
                self.vacate(member, "no renewal in time", false);
                member.not_before = Some(self.later());
            }
            Office::Seeking(_) | Office::Held(_) if !mine => {
                let next = manager(view).map_or("nobody".into(), ToString::to_string);
                self.vacate(member, &format!("{next} comes first"), false);
            }
            _ => {}
        }
        let patience = self.patience();
        if let Office::Seeking(seeking) = &mut member.office
            && let Some(holder) = seeking.rival(patience, self.env.now())
        {
            self.shared.tell(Event::Rival { holder });
        }
    }

    /// What the valid holder does, and nobody else: re-create a lost record, keep the seeds, put the unreachable down.
    async fn manage(&mut self, member: &mut Member, view: &ClusterView) -> Option<Exit> {
        let now = self.env.now();
        member.unreachable.observe(view, now);
        member.not_before = member.not_before.filter(|at| now < *at);
        let other = other_record(member).is_some() || is_unreadable(member);
        let missing = member.told.as_ref().is_some_and(Vec::is_empty);
        if let Office::Seeking(seeking) = &mut member.office
            && seeking.meet_at().is_some_and(|at| now >= at)
        {
            seeking.met(now);
            let holder = seeking.holder();
            self.meet_strangers(member.record, view, holder).await;
        }
        let Office::Held(held) = &mut member.office else {
            member.seeds = None;
            return None;
        };
        if other || !held.is_valid() || member.not_before.is_some() {
            return None;
        }
        if !held.verified || missing {
            match self.verify(held, member.record).await {
                Ok(true) => held.verified = true,
                Ok(false) => return Some(Exit::Superseded),
                Err(_) => {
                    member.not_before = Some(self.later());
                    return None;
                }
            }
        }
        if let Some(seeds) = &mut member.seeds {
            // What it shows is not needed: it only tells that somebody wrote.
            member.stale |= seeds.take_changed();
        } else {
            let target = Target::Children(self.keys.seeds.clone());
            member.seeds = Some(Follow::start(&self.coordinator, target));
            member.stale = true;
        }
        if member.stale
            || member
                .compared
                .as_ref()
                .is_none_or(|compared| compared.members != view.members)
        {
            match self.keep_seeds(held, view).await {
                Ok(()) => {
                    member.stale = false;
                    member.compared = Some(view.clone());
                }
                Err(_) => {
                    member.stale = true;
                    member.not_before = Some(self.later());
                }
            }
        }
        if let Some(stable) = self.config.down_after
            && held.is_valid()
        {
            let doomed = member.unreachable.stable(stable, self.env.now());
            if !doomed.is_empty() {
                for node in &doomed {
                    // A node that has stopped is found out at the next look.
                    let _ = self.cluster.down(node.clone()).await;
                }
                member.unreachable.forget();
                self.shared.tell(Event::Downed { nodes: doomed });
            }
        }
        None
    }

    /// Gives the leader's entry back in the background, or hands it out.
    fn vacate(&mut self, member: &mut Member, why: &str, keep: bool) -> Option<Box<Held>> {
        member.seeds = None;
        match std::mem::replace(&mut member.office, Office::Vacant) {
            Office::Vacant => None,
            Office::Seeking(seeking) => {
                self.give_up(*seeking);
                None
            }
            Office::Held(held) => {
                self.shared.tell(Event::NotManaging { why: why.to_owned() });
                if keep {
                    return Some(held);
                }
                let release = held.release(&self.env);
                self.retire(release);
                None
            }
        }
    }

    fn show(&self, member: &Member) {
        let managing = matches!(&member.office, Office::Held(held) if held.verified && held.is_valid());
        metrics::gauge!("coord_bootstrap_managing").set(f64::from(u8::from(managing)));
        self.shared.set(State::Member {
            record: member.record,
            managing,
        });
    }

    /// When to look again although nothing has changed; the last look began at `since`.
    fn due(&self, member: &Member, since: Instant) -> Option<Instant> {
        let (rival, meet) = match &member.office {
            Office::Seeking(seeking) => (seeking.rival_due(self.patience()), seeking.meet_at()),
            _ => (None, None),
        };
        let down = match (&member.office, self.config.down_after) {
            (Office::Held(_), Some(stable)) => member.unreachable.due(stable),
            _ => None,
        };
        // What was overdue at the last look waits for something else to change; what has become due since then does not.
        let due = [rival, meet, down, member.not_before].into_iter().flatten();
        due.filter(|at| *at > since).min()
    }

    /// How long another may hold the leader's entry when it is this node's turn: it may have crashed, or may not have
    /// heard yet.
    fn patience(&self) -> Duration {
        self.config.ttl * 2 + self.coordinator.capabilities().expiry_slack
    }

    fn is_time(&self, member: &Member) -> bool {
        member.not_before.is_none_or(|at| self.env.now() >= at)
    }

    fn later(&self) -> Instant {
        self.env.now() + AGAIN - self.env.random_duration(AGAIN / 2)
    }
}

/// What woke the loop.
enum Wake {
    Look,
    Seeds,
    Office(Step),
}

/// What happened to the leader's entry.
enum Step {
    Seen,
    Elected(coord_api::Leadership),
    Failed(coord_api::Error),
    Lost(String),
}

async fn progress(office: &mut Office, env: &coord_api::Env) -> Step {
    match office {
        Office::Vacant => std::future::pending().await,
        Office::Seeking(seeking) => match seeking.progress(env).await {
            None => Step::Seen,
            Some(Ok(leadership)) => Step::Elected(leadership),
            Some(Err(error)) => Step::Failed(error),
        },
        Office::Held(held) => {
            let term = held.leadership.term();
            tokio::select! {
                biased;
                why = term.lost() => Step::Lost(why.to_string()),
                () = term.stopped() => Step::Lost("no renewal in time".into()),
            }
        }
    }
}

async fn sleep(env: &coord_api::Env, due: Option<Instant>) {
    match due {
        Some(due) => env.sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The record, as far as the watch has told, if it names another cluster.
fn other_record(member: &Member) -> Option<Record> {
    let record = Record::parse(&member.told.as_ref()?.first()?.value)?;
    (record.cluster != member.record.cluster).then_some(record)
}

/// Somebody wrote there what is no record: nobody touches it.
fn is_unreadable(member: &Member) -> bool {
    let entry = member.told.as_ref().and_then(|entries| entries.first());
    entry.is_some_and(|entry| Record::parse(&entry.value).is_none())
}
