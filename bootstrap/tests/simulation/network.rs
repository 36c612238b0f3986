//! The simulated network of coord-cluster on tokio's virtual time, and its nodes as [`Cluster`]s.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Env, Instant, Task};
use coord_bootstrap::{Cluster, NodeGone, NotLetIn};
use coord_cluster::sim::{Network, Sim};
use coord_cluster::{Address, ClusterId, ClusterView, Config, Departed, Event, Incarnation, Input, NodeId};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::{Notify, oneshot, watch};

/// The network, moved on by a task of its own.
pub(crate) struct Net {
    inner: Arc<Inner>,
    _pump: Task,
}

struct Inner {
    env: Env,
    start: Instant,
    state: Mutex<NetState>,
    news: Notify,
}

struct NetState {
    sim: Sim,
    lives: Vec<Life>,
}

/// What is known of the present life of a node.
struct Life {
    view: watch::Sender<ClusterView>,
    joining: Option<oneshot::Sender<Result<(), NotLetIn>>>,
    refused: Option<NotLetIn>,
    leaving: Vec<oneshot::Sender<Departed>>,
    left: Option<Departed>,
}

/// One node in one life.
pub(crate) struct SimNode {
    inner: Arc<Inner>,
    node: usize,
}

// === impl Net ===

impl Net {
    pub(crate) fn new(env: &Env, network: Network, config: Config) -> Net {
        let mut sim = Sim::new(env.random_u64(), network);
        sim.set_config(Config {
            rejoin: false,
            ..config
        });
        sim.check_invariants();
        sim.record_events();
        let inner = Arc::new(Inner {
            env: env.child(),
            start: env.now(),
            state: Mutex::new(NetState { sim, lives: vec![] }),
            news: Notify::new(),
        });
        Net {
            _pump: env.spawn(pump(inner.clone())),
            inner,
        }
    }

    /// One more node.
    pub(crate) fn add(&self) -> usize {
        self.inner.change(|state| {
            let node = state.sim.add_node();
            let life = Life::of(&state.sim, node);
            state.lives.push(life);
            node
        })
    }

    /// A node's new life at its old address; the first one begins with [`Net::add`].
    pub(crate) fn restart(&self, node: usize) {
        // As in production: the time of the start.
        let micros = (self.inner.env.now() - self.inner.start).as_micros();
        let incarnation = Incarnation(u64::try_from(micros).unwrap() + 2);
        self.inner.change(|state| {
            state.sim.restart_as(node, incarnation);
            state.lives[node] = Life::of(&state.sim, node);
        });
    }

    pub(crate) fn node(&self, node: usize) -> Arc<SimNode> {
        let inner = self.inner.clone();
        Arc::new(SimNode { inner, node })
    }

    /// Anything that is done to the simulation from outside.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Sim) -> T) -> T {
        self.inner.change(|state| act(&mut state.sim))
    }
}

async fn pump(inner: Arc<Inner>) {
    loop {
        let due = inner.lock().sim.next_due();
        let sleep = async {
            match due {
                Some(due) => inner.env.sleep_until(inner.start + due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = sleep => inner.change(|_| ()),
            () = inner.news.notified() => {}
        }
    }
}

// === impl Inner ===

impl Inner {
    fn lock(&self) -> MutexGuard<'_, NetState> {
        self.state.lock().unwrap()
    }

    /// Lets the simulation catch up, changes something, and tells what came of it.
    fn change<T>(&self, act: impl FnOnce(&mut NetState) -> T) -> T {
        let mut state = self.lock();
        state.sim.run_until(self.env.now() - self.start);
        let output = act(&mut state);
        state.tell();
        drop(state);
        self.news.notify_one();
        output
    }
}

// === impl NetState ===

impl NetState {
    fn tell(&mut self) {
        let events = self.sim.take_events();
        let touched: BTreeSet<usize> = events.iter().map(|(_, node, _)| *node).collect();
        for node in touched {
            self.lives[node].view.send_replace(self.sim.core(node).view());
        }
        for (_, node, event) in events {
            self.lives[node].hear(event);
        }
    }
}

// === impl Life ===

impl Life {
    fn of(sim: &Sim, node: usize) -> Life {
        Life {
            view: watch::Sender::new(sim.core(node).view()),
            joining: None,
            refused: None,
            leaving: vec![],
            left: None,
        }
    }

    fn hear(&mut self, event: Event) {
        let outcome = match event {
            Event::Joined { .. } => Some(Ok(())),
            Event::JoinFailed => Some(Err(self.refused.unwrap_or(NotLetIn::NoAnswer))),
            Event::Refused { refusal, .. } => {
                self.refused = Some(refusal.into());
                None
            }
            Event::Left { graceful, last } => {
                let departed = Departed { graceful, last };
                self.left = Some(departed);
                for reply in self.leaving.drain(..) {
                    let _ = reply.send(departed);
                }
                None
            }
            _ => None,
        };
        if let Some((reply, outcome)) = self.joining.take_if(|_| outcome.is_some()).zip(outcome) {
            let _ = reply.send(outcome);
        }
    }
}

#[async_trait]
impl Cluster for SimNode {
    fn view(&self) -> ClusterView {
        self.inner.lock().lives[self.node].view.borrow().clone()
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        let view = self.inner.lock().lives[self.node].view.subscribe();
        let follow = |mut view: watch::Receiver<ClusterView>| async move {
            view.changed().await.ok()?;
            Some(((), view))
        };
        stream::unfold(view, follow).boxed()
    }

    async fn form(&self, id: ClusterId) -> Result<(), NodeGone> {
        self.input(Input::Form { cluster: Some(id) });
        Ok(())
    }

    async fn join(&self, id: ClusterId, contact: &Address) -> Result<(), NotLetIn> {
        let (reply, answer) = oneshot::channel();
        let contacts = vec![contact.clone()];
        self.inner.change(|state| {
            let life = &mut state.lives[self.node];
            (life.joining, life.refused) = (Some(reply), None);
            state.sim.input(self.node, Input::Enter { cluster: id, contacts });
        });
        let mut guard = Abandon(Some(self));
        let answer = answer.await.unwrap_or(Err(NotLetIn::NoAnswer));
        guard.0 = None;
        answer
    }

    async fn reset(&self) -> Result<(), NodeGone> {
        self.input(Input::Reset);
        Ok(())
    }

    async fn meet(&self, contact: &Address) -> Result<(), NodeGone> {
        self.input(Input::Meet {
            address: contact.clone(),
        });
        Ok(())
    }

    async fn down(&self, node: NodeId) -> Result<(), NodeGone> {
        self.input(Input::Down { node });
        Ok(())
    }

    async fn leave(&self, within: Duration) -> Result<Departed, NodeGone> {
        let (reply, answer) = oneshot::channel();
        self.inner.change(|state| match state.lives[self.node].left {
            Some(departed) => drop(reply.send(departed)),
            None => {
                state.lives[self.node].leaving.push(reply);
                state.sim.input(self.node, Input::Leave { node: None, within });
            }
        });
        answer.await.map_err(|_| NodeGone)
    }
}

impl SimNode {
    fn input(&self, input: Input) {
        self.inner.change(|state| state.sim.input(self.node, input));
    }
}

/// A join that nobody waits for any more is given up.
struct Abandon<'a>(Option<&'a SimNode>);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if let Some(node) = self.0 {
            node.input(Input::AbandonJoin);
        }
    }
}
