use std::sync::Arc;
use std::time::Duration;

use coord_api::{Capabilities, Env, ErrorKind, LeaseId, Result, Task};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use zookeeper_client::Error as ZkError;

use crate::ZkConfig;
use crate::call::Call;
use crate::conn::{Barrier, Conn};
use crate::faults;
use crate::fresh::Fresh;
use crate::known::Known;
use crate::lease::{Lease, Lost};
use crate::leases::Leases;
use crate::nonces::Nonces;
use crate::session::{self, Pause};
use crate::shared::Shared;
use crate::watch::Watches;

/// Before something that failed without a visible reason is tried again.
pub(crate) const AGAIN: Duration = Duration::from_millis(5);

/// Hardly a server grants less, as two of its ticks.
const SHORTEST: Duration = Duration::from_millis(200);

const TOO_MANY: &str = "the servers accept no further connection from this address; each lease needs one: raise \
                        maxClientCnxns (60 by default) or use fewer leases";

/// What all handles of one coordinator share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: Arc<ZkConfig>,
    pub(crate) env: Env,
    pub(crate) capabilities: Capabilities,
    pub(crate) shared: Shared,
    pub(crate) leases: Arc<Leases>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) known: Known,
    pub(crate) fresh: Arc<Fresh>,
    /// The persistent creates that were given up; those of a lease are remembered there.
    pub(crate) nonces: Arc<Nonces>,
    pub(crate) closed: CancellationToken,
    keeper: std::sync::Mutex<Option<Task>>,
    runtime: Handle,
}

/// Which session a write goes through.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    Shared,
    Lease(Arc<Lease>),
}

impl Inner {
    pub(crate) fn new(config: ZkConfig, env: Env, runtime: Handle) -> Inner {
        let config = Arc::new(config);
        let (shared, keeper) = Shared::start(config.clone(), &env, runtime.clone());
        Inner {
            capabilities: crate::capabilities::capabilities(&config),
            leases: Arc::default(),
            watches: Arc::default(),
            known: Known::default(),
            fresh: Arc::default(),
            nonces: Arc::default(),
            closed: CancellationToken::new(),
            keeper: std::sync::Mutex::new(Some(keeper)),
            config,
            env,
            shared,
            runtime,
        }
    }

    pub(crate) async fn grant(&self, call: &Call, ttl: Duration) -> Result<LeaseId> {
        // The library gives a connect no more time than part of the session that is asked for.
        let ttl = ttl.max(SHORTEST);
        let mut pause = Pause::new();
        let mut turned_away = false;
        loop {
            let sent = self.env.now();
            call.sent();
            let answer = session::connect(&self.config, ttl, None).await;
            // A session that was opened without our knowing carries nothing and ends by itself.
            call.settled();
            match answer {
                Ok(client) => {
                    let conn = Conn::new(client, &self.env, self.runtime.clone());
                    let lease = Arc::new(Lease::new(conn, sent, self.env.now()));
                    let id = lease.id;
                    self.leases.add(&self.env, lease);
                    if self.closed.is_cancelled() {
                        // Too late for the close to end it.
                        let _ = self.leases.end(&self.env, &self.config, id).await;
                        return Err(call.definite(ErrorKind::Closed));
                    }
                    return Ok(id);
                }
                Err(error @ ZkError::AuthFailed) => return Err(call.refused(&error)),
                Err(error) => {
                    tracing::debug!(%error, "no session for a lease");
                    // A server that is slow or gone takes its time; one that turns us away does so at once.
                    let at_once = self.env.now() - sent < self.config.wire_timeout(ttl) / 2;
                    let before = std::mem::replace(&mut turned_away, at_once && self.shared_answers().await);
                    if before && turned_away {
                        return Err(call.definite(ErrorKind::LimitReached(TOO_MANY.into())));
                    }
                }
            }
            pause.wait(&self.env).await;
        }
    }

    /// A server that has too many connections from our address drops the next one without a word. If the shared
    /// connection works all the while, that is why.
    async fn shared_answers(&self) -> bool {
        match self.shared.now().filter(|conn| conn.is_connected()) {
            Some(conn) => conn.barrier().await.is_ok(),
            None => false,
        }
    }

    pub(crate) async fn renew(&self, call: &Call, id: LeaseId) -> Result<coord_api::Grant> {
        let lease = self.lease(call, id)?;
        loop {
            if lease.conn.connected().await.is_err() {
                lease.end();
                return Err(call.definite(ErrorKind::LeaseLost(id)));
            }
            let sent = self.env.now();
            match lease.conn.barrier().await {
                Ok(()) => {
                    let renewed = lease.renewed(sent, self.env.now());
                    return renewed.map_err(|Lost| call.definite(ErrorKind::LeaseLost(id)));
                }
                // A renewal that is sent twice does no harm.
                Err(Barrier::Lost(_)) => self.again().await,
                Err(Barrier::Over) => {}
            }
        }
    }

    pub(crate) fn lease(&self, call: &Call, id: LeaseId) -> Result<Arc<Lease>> {
        self.leases.get(id).map_err(|kind| call.definite(kind))
    }

    /// The session to send on, once it is connected.
    pub(crate) async fn conn(&self, call: &Call, route: &Route) -> Result<Arc<Conn>> {
        match route {
            Route::Shared => Ok(self.shared.conn().await),
            Route::Lease(lease) => {
                if lease.has_ended() || lease.conn.connected().await.is_err() {
                    let kind = ErrorKind::LeaseLost(lease.id);
                    return Err(if call.is_unsettled() {
                        call.broken(kind)
                    } else {
                        call.definite(kind)
                    });
                }
                Ok(lease.conn.clone())
            }
        }
    }

    pub(crate) async fn again(&self) {
        self.env.sleep(AGAIN).await;
    }

    /// Why nothing could be sent on this route.
    pub(crate) fn trouble(&self, lease: Option<LeaseId>) -> Option<ErrorKind> {
        match lease.and_then(|id| self.leases.get(id).ok()) {
            Some(lease) if lease.conn.is_connected() => None,
            Some(lease) => Some(ErrorKind::Unavailable(faults::state_hint(lease.conn.state()).into())),
            None => self.shared.trouble(),
        }
    }

    /// Ends everything that this coordinator has at the servers.
    pub(crate) async fn close(&self, call: &Call) -> Result<()> {
        self.closed.cancel();
        self.watches.end_all();
        let ends = self
            .leases
            .all()
            .into_iter()
            .map(|id| self.leases.end(&self.env, &self.config, id));
        let keeper = self
            .keeper
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        drop(keeper);
        let states = self.shared.now().map(|conn| conn.shut());
        let shared = async {
            if let Some(states) = states {
                crate::conn::ended(states).await;
            }
        };
        call.sent();
        futures::join!(futures::future::join_all(ends), shared);
        call.settled();
        Ok(())
    }
}

impl Route {
    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        match self {
            Route::Shared => None,
            Route::Lease(lease) => Some(lease),
        }
    }
}
