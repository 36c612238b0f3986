mod backoff;
mod config;
mod keeper;
mod leftovers;
mod meter;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{Coordinator, Error, ErrorKind, Instant, Operation, Result, Task};
pub use backoff::{Backoff, Strategy};
pub use config::SessionConfig;
use keeper::Keeper;
use leftovers::Leftovers;
use meter::Meter;
use shared::Shared;
pub use state::{Closure, Health, Lease, LossReason, SessionClosed, SessionState};
pub use watch::SessionWatch;

#[doc = include_str!("session.md")]
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    coordinator: Arc<dyn Coordinator>,
    config: SessionConfig,
    shared: Arc<Shared>,
    leftovers: Arc<Leftovers>,
    /// Ends with the last handle.
    keeper: Task,
    runtime: Handle,
    doubt: Arc<Notify>,
    /// Cancelled when the keeper has ended, however that came about.
    ended: CancellationToken,
}

// === impl Session ===

impl Session {
    /// Starts the loop and returns at once, whether the store is up or not. Fails only if the configuration cannot
    /// work. Must be called within a tokio runtime.
    pub fn open(coordinator: Arc<dyn Coordinator>, config: SessionConfig) -> Result<Session> {
        let capabilities = coordinator.capabilities();
        config.check(&capabilities)?;
        let env = coordinator.env().clone();
        let shared = Arc::new(Shared::new(env.clone()));
        let leftovers = Arc::new(Leftovers::default());
        let doubt = Arc::new(Notify::new());
        let keeper = Keeper {
            coordinator: coordinator.clone(),
            config: config.clone(),
            shared: shared.clone(),
            leftovers: leftovers.clone(),
            meter: Meter::new(capabilities.driver, &config.name),
            doubt: doubt.clone(),
        };
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let keeper = env.spawn(async move {
            let _guard = guard;
            keeper.run().await;
        });
        Ok(Session(Arc::new(Inner {
            coordinator,
            config,
            shared,
            leftovers,
            keeper,
            runtime: Handle::current(),
            doubt,
            ended,
        })))
    }

    /// The coordinator beneath.
    pub fn coordinator(&self) -> &Arc<dyn Coordinator> {
        &self.0.coordinator
    }

    /// What it was opened with.
    pub fn config(&self) -> &SessionConfig {
        &self.0.config
    }

    /// The state now, by the clock.
    pub fn state(&self) -> SessionState {
        self.0.shared.state()
    }

    /// The short answer for a health check.
    pub fn health(&self) -> Health {
        self.state().health()
    }

    /// A reader that sees the latest state and can await changes.
    pub fn subscribe(&self) -> SessionWatch {
        SessionWatch::new(self.0.shared.clone())
    }

    /// The live lease, if there is one now.
    pub fn lease(&self) -> Option<Lease> {
        self.state().lease()
    }

    /// Until when the lease of this epoch surely lives, as of the latest renewal; `None` once the epoch has ended, or
    /// before it began. Within an epoch it never goes back.
    pub fn valid_until(&self, epoch: u64) -> Option<Instant> {
        self.lease()
            .filter(|lease| lease.epoch == epoch)
            .map(|lease| lease.valid_until)
    }

    /// A live lease, now or as soon as there is one.
    pub fn connected(&self) -> impl Future<Output = Result<Lease, SessionClosed>> + Send + use<> {
        self.0.shared.when(|current, now| match current.observe(now) {
            SessionState::Closed { why, .. } => Some(Err(SessionClosed { why })),
            state => state.lease().map(Ok),
        })
    }

    /// Resolves when this epoch has ended, with the reason; at once if it has. By the clock: also when the loop stands
    /// still. The future does not keep the session alive.
    pub fn lost(&self, epoch: u64) -> impl Future<Output = LossReason> + Send + use<> {
        self.0.shared.when(move |current, now| current.ended(epoch, now))
    }

    /// Why this epoch has ended, if it has: [`lost`](Session::lost) for who does not wait. Needs no runtime.
    pub(crate) fn ended(&self, epoch: u64) -> Option<LossReason> {
        self.0.shared.ended(epoch)
    }

    /// The runtime that keeps the lease alive.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Renews now instead of when it is due. For who was told [`LeaseLost`](crate::ErrorKind::LeaseLost): if it is true,
    /// the session learns it now, too.
    pub fn check(&self) {
        self.0.doubt.notify_one();
    }

    /// Ends the session: no further renewal, and the lease is revoked. Idempotent.
    ///
    /// Ends by the coordinator's [call deadline](crate::Capabilities::call_deadline). Fails if the store could not be
    /// told; the session is closed all the same, and the lease ends by its ttl.
    pub async fn close(&self) -> Result<()> {
        let Inner {
            coordinator,
            shared,
            leftovers,
            keeper,
            ended,
            ..
        } = &*self.0;
        let env = coordinator.env();
        let capabilities = coordinator.capabilities();
        let deadline = capabilities.call_deadline;
        if let Some(lease) = shared.close(Closure::Asked) {
            leftovers.add(
                lease.lease,
                env.now() + lease.ttl + capabilities.expiry_slack,
                env.now(),
            );
        }
        keeper.abort();
        let ended = async {
            ended.cancelled().await;
            let revoked = join_all(
                leftovers
                    .all()
                    .into_iter()
                    .map(|lease| leftovers.revoke(coordinator, lease)),
            );
            revoked.await.into_iter().find(Result::is_err).unwrap_or(Ok(()))
        };
        match env.timeout_at(env.now() + deadline, ended).await {
            // The coordinator revokes all leases when it closes.
            Some(Err(error)) if error.is_closed() => Ok(()),
            Some(result) => result,
            None => {
                let late = ErrorKind::DeadlineExceeded(deadline);
                Err(Error::unknown(Operation::Revoke, None, late))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.close(Closure::Dropped);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("name", &self.0.config.name)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
