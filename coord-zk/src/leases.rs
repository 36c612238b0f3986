use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use coord_api::{Env, ErrorKind, Key, LeaseId, Task};
use zookeeper_client::SessionInfo;

use crate::ZkConfig;
use crate::conn::ended;
use crate::lease::Lease;
use crate::session;

/// How many leases that have ended are remembered as ours.
const REMEMBERED: usize = 65_536;

/// The leases of one coordinator.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    live: HashMap<LeaseId, (Arc<Lease>, Task)>,
    ended: HashMap<LeaseId, Ended>,
    order: VecDeque<LeaseId>,
}

/// A lease that is over for us. What the server thinks may take longer.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    session: SessionInfo,
    timeout: Duration,
    confirmed: bool,
}

impl Leases {
    /// Takes a lease in, and ends it when nobody renews it in time.
    pub(crate) fn add(self: &Arc<Self>, env: &Env, lease: Arc<Lease>) {
        let task = env.spawn(watchdog(Arc::downgrade(self), env.clone(), Arc::downgrade(&lease)));
        self.lock().live.insert(lease.id, (lease, task));
    }

    /// A lease that can be used, or why not.
    pub(crate) fn get(&self, id: LeaseId) -> Result<Arc<Lease>, ErrorKind> {
        let inner = self.lock();
        match inner.live.get(&id) {
            Some((lease, _)) if !lease.has_ended() => Ok(lease.clone()),
            Some(_) => Err(ErrorKind::LeaseLost(id)),
            None if inner.ended.contains_key(&id) => Err(ErrorKind::LeaseLost(id)),
            None => Err(ErrorKind::ForeignLease(id)),
        }
    }

    /// The lease that carries this entry, if it is one of ours.
    pub(crate) fn carrier(&self, key: &Key) -> Option<Arc<Lease>> {
        let inner = self.lock();
        let mut live = inner.live.values().map(|(lease, _)| lease);
        live.find(|lease| lease.carries(key) && !lease.has_ended()).cloned()
    }

    pub(crate) fn all(&self) -> Vec<LeaseId> {
        self.lock().live.keys().copied().collect()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionInfo> {
        let inner = self.lock();
        inner
            .live
            .values()
            .map(|(lease, _)| lease.conn.session().clone())
            .collect()
    }

    /// Ends the lease and returns when the server has confirmed it. Tries until then: give it a deadline.
    pub(crate) async fn end(&self, env: &Env, config: &ZkConfig, id: LeaseId) -> Result<(), ErrorKind> {
        if let Some(lease) = self.retire(id) {
            let states = lease.conn.shut();
            drop(lease);
            if session::closed(states).await {
                self.confirm(id);
                return Ok(());
            }
        }
        let ended = self.lock().ended.get(&id).cloned();
        match ended {
            None => Err(ErrorKind::ForeignLease(id)),
            Some(ended) if ended.confirmed => Ok(()),
            Some(ended) => {
                session::end(env, config, &ended.session, ended.timeout).await;
                self.confirm(id);
                Ok(())
            }
        }
    }

    /// From now on the lease is not used, and its session closed once nothing is on its way.
    fn retire(&self, id: LeaseId) -> Option<Arc<Lease>> {
        let (lease, watchdog) = {
            let mut inner = self.lock();
            let (lease, watchdog) = inner.live.remove(&id)?;
            lease.end();
            let ended = Ended {
                session: lease.conn.session().clone(),
                timeout: lease.ttl,
                confirmed: false,
            };
            inner.ended.insert(id, ended);
            inner.order.push_back(id);
            if inner.order.len() > REMEMBERED
                && let Some(oldest) = inner.order.pop_front()
            {
                inner.ended.remove(&oldest);
            }
            (lease, watchdog)
        };
        drop(watchdog);
        Some(lease)
    }

    fn confirm(&self, id: LeaseId) {
        if let Some(ended) = self.lock().ended.get_mut(&id) {
            ended.confirmed = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client library keeps a session alive by itself, so a lease that nobody renews is ended here.
async fn watchdog(leases: Weak<Leases>, env: Env, lease: Weak<Lease>) {
    loop {
        // The lease itself must not be held while waiting.
        let Some((ends, states)) = lease.upgrade().map(|lease| (lease.ends(), lease.conn.states())) else {
            return;
        };
        tokio::select! {
            () = env.sleep_until(ends) => {}
            state = ended(states) => {
                if let Some(lease) = lease.upgrade() {
                    tracing::debug!(lease = %lease.id, %state, "session ended");
                    lease.end();
                }
            }
        }
        let Some(held) = lease.upgrade() else { return };
        if held.end_if_due(env.now()) {
            if let Some(leases) = leases.upgrade() {
                // This drops the handle of this very task, which ends at its next await: there is none.
                leases.retire(held.id);
            }
            held.conn.shut();
            return;
        }
    }
}
