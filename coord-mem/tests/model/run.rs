//! Runs the steps on the driver and keeps the worlds that explain what it answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Bytes, Class, Coordinator, Create, CreateMode, Entry, Env, ErrorKind, Expect, Instant, Key, LeaseId, Result,
    Target, Version, Watch, WatchEvent,
};
use coord_mem::{Fault, MemClient, MemStore, StoreOptions};
use futures::FutureExt;
use tokio::runtime::Runtime;

use crate::steps::{CLIENTS, Call, Guard, KEYS, LATEST, Mode, QUEUE, Step};
use crate::world::{Reply, Request, World};

const TTL: Duration = Duration::from_secs(10);
/// More unknown requests at once would make the worlds too many; then time passes first.
const MOST_UNKNOWNS: usize = 3;

pub(crate) struct Run {
    runtime: Runtime,
    members: Vec<Member>,
    /// A client without faults: what it reads after each step every remaining world has to explain.
    observer: Arc<MemClient>,
    worlds: Vec<World>,
    /// Each version and each creation seen, and what it stood for: neither ever means anything else.
    versions: Vec<(Key, Version, Bytes)>,
    creations: BTreeMap<u64, Key>,
    values: u32,
}

struct Member {
    client: Arc<MemClient>,
    connected: bool,
    leases: Vec<LeaseId>,
    unknown: Vec<Create>,
    sequential: Vec<Entry>,
    watches: Vec<(Key, Watch, BTreeMap<Key, Entry>)>,
}

impl Run {
    pub(crate) fn new() -> Run {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (members, observer) = runtime.block_on(async {
            let options = StoreOptions {
                proof_lag: Duration::from_secs(2),
                ..StoreOptions::default()
            };
            let store = MemStore::with_options(&Env::simulated(3), options);
            let mut members = Vec::new();
            for _ in 0..CLIENTS {
                members.push(Member::new(store.client()).await);
            }
            (members, store.client())
        });
        Run {
            runtime,
            members,
            observer,
            worlds: vec![World::new()],
            versions: Vec::new(),
            creations: BTreeMap::new(),
            values: 0,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Call(member, call, fault) => self.call(*member, *call, *fault),
            Step::Advance(time) => self.advance(*time),
            Step::Cut(member) => self.connect(*member, false, |client| client.faults().cut()),
            Step::Swallow(member) => self.connect(*member, false, |client| client.faults().swallow()),
            Step::Heal(member) => self.connect(*member, true, |client| client.faults().heal()),
            Step::Gap(member) => self.members[*member].client.faults().gap(),
            Step::EndLease(member, lease) => {
                if let Some(lease) = pick(&self.members[*member].leases, *lease) {
                    self.settle();
                    self.members[*member].client.faults().end_lease(lease);
                    self.worlds.iter_mut().for_each(|world| world.end_lease(lease));
                }
            }
            Step::EndLeaseEarly(member, lease) => {
                if let Some(lease) = pick(&self.members[*member].leases, *lease) {
                    self.members[*member].client.faults().end_lease_early(lease);
                }
            }
        }
        self.observe();
    }

    fn now(&self) -> Instant {
        let _inside = self.runtime.enter();
        self.observer.env().now()
    }

    fn advance(&self, time: Duration) {
        self.runtime.block_on(self.observer.env().sleep(time));
    }

    fn connect(&mut self, member: usize, connected: bool, change: impl Fn(&MemClient)) {
        let _inside = self.runtime.enter();
        self.members[member].connected = connected;
        change(&self.members[member].client);
    }

    fn call(&mut self, member: usize, call: Call, fault: Fault) {
        if self.worlds.iter().any(|world| world.unknowns() >= MOST_UNKNOWNS) {
            self.advance(self.observer.capabilities().call_deadline + 4 * LATEST);
            self.observe();
        }
        let client = self.members[member].client.clone();
        if matches!(call, Call::Grant) {
            client.faults().next_call(fault);
            if let Ok(grant) = self.runtime.block_on(client.grant(TTL)) {
                let now = self.now();
                self.members[member].leases.push(grant.lease);
                self.worlds.iter_mut().for_each(|world| world.granted(&grant, now));
            }
            return;
        }
        let Some(request) = self.request(member, call) else {
            return;
        };
        self.settle();
        client.faults().next_call(fault);
        let answer = self.runtime.block_on(send(&client, &request));
        let now = self.now();
        match answer {
            Ok(reply) => {
                self.remember(member, &request, &reply);
                self.explain(&request, &Ok(reply), now);
            }
            Err(error) => match error.class() {
                Class::Definite => self.explain(&request, &Err(error.kind().clone()), now),
                Class::NotSent => {}
                Class::Unknown => {
                    if let Request::Create(create) = &request {
                        self.members[member].unknown.push(create.clone());
                    }
                    let until = now + 4 * LATEST;
                    let worlds = self.worlds.iter_mut();
                    worlds.for_each(|world| world.add_unknown(request.clone(), until));
                }
            },
        }
    }

    fn request(&mut self, member: usize, call: Call) -> Option<Request> {
        self.values += 1;
        let value = Bytes::from(self.values.to_string());
        let member = &self.members[member];
        let key = |at: usize| Key::new(KEYS[at]).unwrap();
        Some(match call {
            Call::Grant => return None,
            Call::Renew(lease) => Request::Renew(pick(&member.leases, lease)?),
            Call::Revoke(lease) => Request::Revoke(pick(&member.leases, lease)?),
            Call::Create(at, mode) => {
                let mode = match mode {
                    Mode::Persistent => CreateMode::Persistent,
                    Mode::Ephemeral(lease) => CreateMode::Ephemeral(pick(&member.leases, lease)?),
                    Mode::Sequential(lease) => CreateMode::Sequential(pick(&member.leases, lease)?),
                };
                // All of one queue, so that there are several of them in it at a time.
                let key = if let CreateMode::Sequential(_) = mode {
                    Key::new(QUEUE).unwrap()
                } else {
                    key(at)
                };
                Request::Create(Create::new(member.client.env(), key, value, mode))
            }
            Call::CreateAgain(attempt) => Request::Create(pick(&member.unknown, attempt)?),
            Call::Abandon(attempt) => Request::Abandon(pick(&member.unknown, attempt)?),
            Call::Get(at) => Request::Get(key(at)),
            Call::Children(at) => Request::Children(key(at)),
            Call::Update(at, guard) => Request::Update(key(at), value, self.guard(&key(at), guard)),
            Call::Delete(at, guard) => Request::Delete(key(at), self.guard(&key(at), guard)),
            Call::Standing(at) => Request::Standing(pick(&member.sequential, at)?),
        })
    }

    fn guard(&self, key: &Key, guard: Guard) -> Expect {
        let mut seen = self.versions.iter().rev().filter(|(of, _, _)| of == key);
        let version = match guard {
            Guard::Any => None,
            Guard::Latest => seen.next(),
            Guard::Older => seen.nth(1),
        };
        version.map_or(Expect::Any, |(_, version, _)| Expect::Version(*version))
    }

    fn remember(&mut self, member: usize, request: &Request, reply: &Reply) {
        let member = &mut self.members[member];
        if let (Request::Create(create), Reply::Entry(entry)) = (request, reply) {
            // A copy may still be under way, but nothing is promised about using it again.
            member.unknown.retain(|unknown| unknown.nonce != create.nonce);
            if entry.key.is_sequential() {
                member.sequential.push(entry.clone());
            }
        }
    }

    /// Lets each world become what it may have become by now.
    fn settle(&mut self) {
        let now = self.now();
        self.worlds = possible(reachable(std::mem::take(&mut self.worlds), now), now);
    }

    fn explain(&mut self, request: &Request, answer: &Result<Reply, ErrorKind>, now: Instant) {
        let before = reachable(self.worlds.clone(), now);
        let after = before
            .iter()
            .filter_map(|world| world.explain(request, answer, now))
            .collect();
        self.worlds = possible(reachable(after, now), now);
        let unexplained = self.worlds.is_empty();
        assert!(
            !unexplained,
            "no world explains {request:?} -> {answer:?}; there were {before:#?}"
        );
    }

    fn observe(&mut self) {
        self.settle();
        let now = self.now();
        for parent in ["/", "/a", "/a/b", "/a/b/c", "/q", "/q/d"] {
            let parent = Key::new(parent).unwrap();
            let entries = self.runtime.block_on(self.observer.children(&parent)).unwrap();
            entries.iter().for_each(|entry| self.check_numbers(entry));
            self.members
                .iter_mut()
                .for_each(|member| member.check_watches(&parent, &entries));
            let waiting: Vec<_> = entries
                .iter()
                .filter(|entry| entry.key.is_sequential())
                .cloned()
                .collect();
            self.explain(&Request::Children(parent), &Ok(Reply::Entries(entries)), now);
            for entry in waiting {
                let standing = self.runtime.block_on(self.observer.standing(&entry)).unwrap();
                self.explain(&Request::Standing(entry), &Ok(Reply::Standing(standing)), now);
            }
        }
    }

    fn check_numbers(&mut self, entry: &Entry) {
        let of = self.creations.entry(entry.created).or_insert_with(|| entry.key.clone());
        assert_eq!(of, &entry.key, "creation {} is used again", entry.created);
        let seen = (entry.key.clone(), entry.version, entry.value.clone());
        match self.versions.iter().find(|(_, version, _)| *version == entry.version) {
            Some(before) => assert_eq!(*before, seen, "a version is used again"),
            None => self.versions.push(seen),
        }
    }
}

impl Member {
    async fn new(client: Arc<MemClient>) -> Member {
        let mut watches = Vec::new();
        for parent in ["/", "/q"] {
            let parent = Key::new(parent).unwrap();
            let watch = client.watch(&Target::Children(parent.clone())).await.unwrap();
            watches.push((parent, watch, BTreeMap::new()));
        }
        Member {
            client,
            connected: true,
            leases: Vec::new(),
            unknown: Vec::new(),
            sequential: Vec::new(),
            watches,
        }
    }

    /// What the watches told adds up to what is there, at any moment at which they are connected.
    fn check_watches(&mut self, parent: &Key, entries: &[Entry]) {
        for (of, watch, view) in &mut self.watches {
            while let Some(event) = watch.next().now_or_never() {
                follow(view, event.expect("the watch goes on").expect("without error"));
            }
            if self.connected && of == parent {
                assert_eq!(view.values().cloned().collect::<Vec<_>>(), entries, "the watch of {of}");
            }
        }
    }
}

fn follow(view: &mut BTreeMap<Key, Entry>, event: WatchEvent) {
    match event {
        WatchEvent::State(entries) | WatchEvent::Resync(entries) => {
            *view = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        }
        WatchEvent::Put(entry) => {
            let before = view.insert(entry.key.clone(), entry.clone());
            assert!(
                before.is_none_or(|before| before.created <= entry.created),
                "back in time"
            );
        }
        WatchEvent::Delete { key, .. } => {
            view.remove(&key);
        }
    }
}

/// These worlds and all that they may have become by now.
fn reachable(worlds: Vec<World>, now: Instant) -> Vec<World> {
    let mut found: Vec<World> = Vec::new();
    let mut open = worlds;
    while let Some(world) = open.pop() {
        if !found.contains(&world) {
            open.extend(world.next_steps(now));
            found.push(world);
        }
    }
    found
}

fn possible(mut worlds: Vec<World>, now: Instant) -> Vec<World> {
    worlds.retain_mut(|world| world.is_possible(now));
    worlds
}

fn pick<T: Clone>(from: &[T], at: usize) -> Option<T> {
    // Counted from the newest, which are the ones still alive.
    from.iter().rev().nth(at % from.len().max(1)).cloned()
}

async fn send(client: &MemClient, request: &Request) -> Result<Reply> {
    Ok(match request {
        Request::Renew(lease) => Reply::Renewed(client.renew(*lease).await?),
        Request::Revoke(lease) => client.revoke(*lease).await.map(|()| Reply::Done)?,
        Request::Create(create) => Reply::Entry(client.create(create).await?),
        Request::Abandon(create) => client.abandon(create).await.map(|()| Reply::Done)?,
        Request::Get(key) => Reply::Found(client.get(key).await?),
        Request::Children(key) => Reply::Entries(client.children(key).await?),
        Request::Update(key, value, expect) => Reply::Entry(client.update(key, value.clone(), *expect).await?),
        Request::Delete(key, expect) => client.delete(key, *expect).await.map(|()| Reply::Done)?,
        Request::Standing(entry) => Reply::Standing(client.standing(entry).await?),
    })
}
