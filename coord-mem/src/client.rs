use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coord_api::{Env, Error, ErrorKind, Instant, Key, Operation, Result};
use tokio::sync::{Notify, oneshot};

use crate::faults::{Fault, Faults, GiveUp, Plan};
use crate::state::{ClientId, State};
use crate::store;

/// One client of a [`MemStore`](crate::MemStore): a [`Coordinator`](coord_api::Coordinator).
///
/// Requests take effect at once and in the order of the calls; a call never waits unless a [fault](Faults) has it
/// wait. While its environment is [paused](Env::pause), its calls stand still too.
#[derive(Debug)]
pub struct MemClient {
    pub(crate) shared: Arc<Shared>,
    /// Of each call of this view.
    pub(crate) deadline: Duration,
}

/// What all views of one client share.
pub(crate) struct Shared {
    pub(crate) store: Arc<store::Shared>,
    pub(crate) id: ClientId,
    pub(crate) env: Env,
    pub(crate) plan: Mutex<Plan>,
    pub(crate) link: LinkState,
    /// Use after close is refused.
    pub(crate) closed: AtomicBool,
    /// The store heard of the close: nothing is left to do.
    pub(crate) goodbye_said: AtomicBool,
}

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Link {
    #[default]
    Up,
    Cut,
    Swallowing,
}

/// A request on its way: when it was sent, and what the store is to do with it when.
pub(crate) struct Sent {
    /// On the client's clock.
    pub(crate) by_client: Instant,
    /// The same moment on the store's clock: the client's may have jumped.
    pub(crate) by_store: Instant,
    /// The lease is to end as early as the answer allows.
    pub(crate) ends_early: bool,
}

// === impl MemClient ===

impl MemClient {
    pub(crate) fn new(store: Arc<store::Shared>) -> MemClient {
        let deadline = store.options.call_deadline;
        let shared = Shared {
            id: store.access(|state, _| state.add_client()),
            env: store.env.child(),
            store,
            plan: Mutex::default(),
            link: LinkState::default(),
            closed: AtomicBool::new(false),
            goodbye_said: AtomicBool::new(false),
        };
        MemClient {
            shared: Arc::new(shared),
            deadline,
        }
    }

    /// Makes things go wrong for this client.
    pub fn faults(&self) -> Faults {
        Faults::new(self.shared.clone())
    }

    /// Sends a request, under whatever fault its turn has come, and waits for the answer.
    pub(crate) async fn call<T, R>(&self, operation: Operation, key: Option<&Key>, request: R) -> Result<T>
    where
        T: Send + 'static,
        R: FnOnce(&mut State, Instant, Sent) -> Result<T> + Send + 'static,
    {
        let call = Call {
            client: &self.shared,
            operation,
            key,
            deadline: self.deadline,
        };
        self.shared.env.gated(call.run(request)).await
    }

    /// Refuses what comes after the close.
    pub(crate) fn check_open(&self, operation: Operation, key: Option<&Key>) -> Result<()> {
        if self.shared.closed.load(Ordering::SeqCst) {
            return Err(Error::closed(operation, key));
        }
        Ok(())
    }
}

impl Shared {
    fn met(&self, fault: &'static str) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).count(fault);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("link", &self.link.get())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// The state of the connection. Not a `watch` channel: that wakes its readers in random order, and one seed is to give
/// one history.
#[derive(Debug, Default)]
pub(crate) struct LinkState {
    link: Mutex<Link>,
    changed: Notify,
}

impl LinkState {
    pub(crate) fn get(&self) -> Link {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, link: Link) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
        self.changed.notify_waiters();
    }

    /// Waits until the connection is cut.
    async fn cut(&self) {
        loop {
            // Asked before looking: no change in between is missed.
            let changed = self.changed.notified();
            if self.get() == Link::Cut {
                return;
            }
            changed.await;
        }
    }
}

/// One call on its way through the faults.
struct Call<'a> {
    client: &'a Shared,
    operation: Operation,
    key: Option<&'a Key>,
    deadline: Duration,
}

// === impl Call ===

impl Call<'_> {
    async fn run<T, R>(self, request: R) -> Result<T>
    where
        T: Send + 'static,
        R: FnOnce(&mut State, Instant, Sent) -> Result<T> + Send + 'static,
    {
        // A caller in a tight loop lets others run now and then, as it would if this were a network.
        tokio::task::coop::consume_budget().await;
        let Shared { store, id, env, .. } = self.client;
        let started = env.now();
        let give_up_at = started + self.deadline;
        let fault = self.draw_fault();
        let link = self.client.link.get();
        if link == Link::Cut {
            return Err(self.not_sent("the connection is cut"));
        }
        let sent = Sent {
            by_client: started,
            by_store: store.env.now(),
            ends_early: fault == Fault::EndLeaseEarly,
        };
        let arrive = |state: &mut State, now| request(state, now, sent);
        let fault = match fault {
            Fault::NotSent => {
                self.client.met(fault.name());
                return Err(self.not_sent("a fault was asked for"));
            }
            _ if link == Link::Swallowing => Fault::LoseRequest(GiveUp::AtDeadline),
            fault => fault,
        };
        self.client.met(fault.name());
        match fault {
            Fault::Pass | Fault::EndLeaseEarly | Fault::NotSent => store.access(arrive),
            Fault::LoseRequest(give_up) => Err(self.no_answer(give_up, give_up_at).await),
            Fault::LoseAnswer(give_up) => {
                drop(store.access(arrive));
                Err(self.no_answer(give_up, give_up_at).await)
            }
            Fault::ArriveLate(give_up, late) => {
                let wait = match give_up {
                    GiveUp::AtOnce => Duration::ZERO,
                    GiveUp::AtDeadline => self.deadline,
                };
                // Not before the next tick of the timers, in order to be late indeed.
                let late = late.max(Duration::from_millis(1));
                store.access(|state, now| {
                    let arrival = move |state: &mut State, now| drop(arrive(state, now));
                    state.arrive_at(now + wait + late, Box::new(arrival));
                });
                Err(self.no_answer(give_up, give_up_at).await)
            }
            Fault::Delay(delay) => {
                let (answer, received) = oneshot::channel();
                let id = *id;
                store.access(|state, now| {
                    let arrival = move |state: &mut State, now| {
                        let output = arrive(state, now);
                        send_answer(state, id, answer, output);
                    };
                    state.arrive_at(now + delay, Box::new(arrival));
                });
                self.receive(received, give_up_at).await
            }
            Fault::DelayAnswer(delay) => {
                let (answer, received) = oneshot::channel();
                let id = *id;
                store.access(|state, now| {
                    let output = arrive(state, now);
                    let arrival = move |state: &mut State, _| send_answer(state, id, answer, output);
                    state.arrive_at(now + delay, Box::new(arrival));
                });
                self.receive(received, give_up_at).await
            }
        }
    }

    fn draw_fault(&self) -> Fault {
        let (fault, gap) = {
            let mut plan = self.client.plan.lock().unwrap_or_else(PoisonError::into_inner);
            plan.draw(&self.client.env, self.operation)
        };
        if gap {
            self.client.met("gap");
            self.client.store.access(|state, _| state.resync(self.client.id));
        }
        fault
    }

    async fn receive<T>(&self, answer: oneshot::Receiver<Result<T>>, give_up_at: Instant) -> Result<T> {
        tokio::select! {
            biased;
            Ok(output) = answer => output,
            () = self.client.link.cut() => Err(self.unknown(GiveUp::AtOnce)),
            () = self.client.env.sleep_until(give_up_at) => Err(self.unknown(GiveUp::AtDeadline)),
        }
    }

    async fn no_answer(&self, give_up: GiveUp, give_up_at: Instant) -> Error {
        let (_never, no_answer) = oneshot::channel::<Result<std::convert::Infallible>>();
        match give_up {
            GiveUp::AtOnce => self.unknown(give_up),
            GiveUp::AtDeadline => match self.receive(no_answer, give_up_at).await {
                Err(error) => error,
                Ok(never) => match never {},
            },
        }
    }

    fn not_sent(&self, why: &str) -> Error {
        Error::not_sent(self.operation, self.key, ErrorKind::Unavailable(why.to_owned()))
    }

    fn unknown(&self, give_up: GiveUp) -> Error {
        let kind = match give_up {
            GiveUp::AtOnce => ErrorKind::Unavailable("the connection broke".to_owned()),
            GiveUp::AtDeadline => ErrorKind::DeadlineExceeded(self.deadline),
        };
        Error::unknown(self.operation, self.key, kind)
    }
}

/// An answer finds its way only over a connection that is up.
fn send_answer<T>(state: &State, client: ClientId, answer: oneshot::Sender<T>, output: T) {
    if state.is_reachable(client) {
        drop(answer.send(output));
    }
}
