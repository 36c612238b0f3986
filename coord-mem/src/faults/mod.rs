mod fault;
mod odds;
mod plan;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use coord_api::{LeaseId, Operation};

pub use fault::{Fault, GiveUp};
pub use odds::Odds;
pub(crate) use plan::Plan;

use crate::client::{Link, Shared};

/// What goes wrong for one client: a handle of [`MemClient::faults`](crate::MemClient::faults).
///
/// | fault | how |
/// | --- | --- |
/// | one call fails before sending, loses its request or answer, arrives late, is slow | [`next`](Faults::next) with a [`Fault`] |
/// | calls fail at random, the same way for the same seed | [`seeded`](Faults::seeded) with [`Odds`] |
/// | the connection breaks, or swallows everything | [`cut`](Faults::cut), [`swallow`](Faults::swallow), then [`heal`](Faults::heal) |
/// | the process stops | [`pause`](Faults::pause), [`resume`](Faults::resume) |
/// | a lease ends on purpose | [`end_lease`](Faults::end_lease) |
/// | a lease ends earlier than an acknowledged renewal suggests | [`end_lease_early`](Faults::end_lease_early), [`Fault::EndLeaseEarly`] |
/// | watches have a gap | [`gap`](Faults::gap) |
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use coord_api::{Coordinator, Create, CreateMode, Env, Key, Operation};
/// use coord_mem::{Fault, GiveUp, MemStore};
///
/// let store = MemStore::new(&Env::simulated(1));
/// let client = store.client();
/// client.faults().next(Operation::Create, Fault::LoseAnswer(GiveUp::AtOnce));
///
/// let create = Create::new(client.env(), Key::new("/a").unwrap(), "value", CreateMode::Persistent);
/// let unknown = client.create(&create).await.unwrap_err();
/// assert!(unknown.is_unknown());
/// // The same create again finds what the first one made.
/// assert_eq!(client.create(&create).await.unwrap().value, "value");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Faults(Arc<Shared>);

impl Faults {
    pub(crate) fn new(client: Arc<Shared>) -> Faults {
        Faults(client)
    }

    /// The next call of this operation meets this fault; asked for several times, one call after the other.
    pub fn next(&self, operation: Operation, fault: Fault) {
        self.with_plan(|plan| plan.push(Some(operation), fault));
    }

    /// The next call of whatever operation meets this fault.
    pub fn next_call(&self, fault: Fault) {
        self.with_plan(|plan| plan.push(None, fault));
    }

    /// From now on, each call that no script names meets faults at random.
    pub fn seeded(&self, odds: Odds) {
        self.with_plan(|plan| plan.set_odds(Some(odds)));
    }

    /// No more scripted or random faults.
    pub fn clear(&self) {
        self.with_plan(Plan::clear);
    }

    /// How many faults of the script no call has met yet.
    pub fn scripted(&self) -> usize {
        self.with_plan(|plan| plan.scripted())
    }

    /// How often calls met which fault so far, by its name (`answer lost`, `arrived late`, …): whether a run of random
    /// faults tried what it was meant to try.
    pub fn met(&self) -> BTreeMap<&'static str, u64> {
        self.with_plan(|plan| plan.met())
    }

    /// Breaks the connection, and both sides notice: calls fail as not sent, those under way as unknown (what they
    /// sent may still arrive), and watches fall silent.
    pub fn cut(&self) {
        self.set_link(Link::Cut);
    }

    /// The connection swallows everything, and nobody notices: requests do not arrive, answers do not come back, calls
    /// fail at their deadline, and watches fall silent.
    pub fn swallow(&self) {
        self.set_link(Link::Swallowing);
    }

    /// The connection is as new; each watch gets a [`Resync`](coord_api::WatchEvent::Resync).
    pub fn heal(&self) {
        self.set_link(Link::Up);
    }

    /// Stops all tasks and calls of the client, as SIGSTOP stops a process: `env().pause()`.
    pub fn pause(&self) {
        self.0.env.pause();
    }

    /// Lets them run on.
    pub fn resume(&self) {
        self.0.env.resume();
    }

    /// Ends a lease now, as an operator's hand or a fault of the store itself does. The one fault that breaks
    /// [`valid_until`](coord_api::Grant::valid_until).
    pub fn end_lease(&self, lease: LeaseId) {
        self.0.store.access(|state, _| state.end_lease(lease));
    }

    /// Unless it is renewed before, the lease ends as early as the store may end it: at the latest
    /// [`valid_until`](coord_api::Grant::valid_until) that its client was told, and at once if that has passed. With a
    /// [`proof_lag`](crate::StoreOptions::proof_lag), this is earlier than the acknowledged renewal suggests.
    pub fn end_lease_early(&self, lease: LeaseId) {
        self.0.store.access(|state, now| {
            state.end_lease_when_proof_ends(lease);
            state.advance(now);
        });
    }

    /// All watches of the client miss something they cannot name, and get a
    /// [`Resync`](coord_api::WatchEvent::Resync).
    pub fn gap(&self) {
        self.0.store.access(|state, _| state.resync(self.0.id));
    }

    fn set_link(&self, link: Link) {
        self.0.store.access(|state, _| {
            if link == Link::Up {
                state.reconnect(self.0.id);
            } else {
                state.disconnect(self.0.id);
            }
            self.0.link.set(link);
        });
    }

    fn with_plan<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(&mut self.0.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
