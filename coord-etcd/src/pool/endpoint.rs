use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use coord_api::{Env, ErrorKind, Instant};
use etcd_client::{Channel, Client, ConnectOptions, KvClient, LeaseClient, WatchClient};
use futures::FutureExt;
use tower::util::BoxCloneSyncService;

use super::marked::Marked;
use crate::failure::{Failure, Reason};

/// Answers may be larger than requests: a page of children at their largest.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// One member of etcd: a connection of its own, and how it has been doing.
pub(crate) struct Endpoint {
    transport: tonic::transport::Endpoint,
    credentials: Option<(String, String)>,
    link: Mutex<Arc<Link>>,
    suspect: AtomicBool,
    /// When it last answered anything, in nanoseconds of the environment's clock.
    heard: AtomicU64,
}

/// One connection, made when first used, and made again by itself when it broke.
pub(crate) struct Link {
    client: Client,
    kv: KvClient,
    lease: LeaseClient,
    watch: WatchClient,
    credentials: Option<(String, String)>,
    /// How often we logged in on it.
    logins: tokio::sync::Mutex<u64>,
    logged_in: AtomicU64,
}

// === impl Endpoint ===

impl Endpoint {
    pub(super) fn new(
        transport: tonic::transport::Endpoint,
        credentials: Option<(String, String)>,
    ) -> Result<Endpoint, Failure> {
        let link = Arc::new(Link::new(&transport, credentials.clone())?);
        Ok(Endpoint {
            transport,
            credentials,
            link: Mutex::new(link),
            suspect: AtomicBool::new(false),
            heard: AtomicU64::new(0),
        })
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new connection instead of one that has fallen silent: waiting for TCP to notice takes too long.
    pub(crate) fn relink(&self, silent: &Arc<Link>) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&link, silent)
            && let Ok(fresh) = Link::new(&self.transport, self.credentials.clone())
        {
            *link = Arc::new(fresh);
        }
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    /// Returns whether that is news.
    pub(super) fn set_suspect(&self, suspect: bool) -> bool {
        self.suspect.load(Ordering::Relaxed) != suspect && self.suspect.swap(suspect, Ordering::Relaxed) != suspect
    }

    pub(crate) fn hear(&self, env: &Env) {
        let now = u64::try_from(env.now().since_start().as_nanos()).unwrap_or(u64::MAX);
        self.heard.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn heard_since(&self, moment: Instant) -> bool {
        u128::from(self.heard.load(Ordering::Relaxed)) >= moment.since_start().as_nanos()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.transport.uri().authority().map(|authority| {
            let authority = authority.as_str();
            authority.rsplit('@').next().unwrap_or(authority)
        });
        f.debug_struct("Endpoint")
            .field("at", &authority)
            .field("suspect", &self.is_suspect())
            .finish_non_exhaustive()
    }
}

// === impl Link ===

impl Link {
    fn new(transport: &tonic::transport::Endpoint, credentials: Option<(String, String)>) -> Result<Link, Failure> {
        let channel = Channel::Custom(BoxCloneSyncService::new(Marked(transport.connect_lazy())));
        let options = ConnectOptions::new().with_require_leader(true);
        // Without a user it awaits nothing: nobody is asked yet.
        let client = Client::from_channel(channel, Some(options))
            .now_or_never()
            .unwrap_or_else(|| Err(etcd_client::Error::Internal("connecting waited".into())))
            .map_err(|error| Failure::of(&error, false))?;
        Ok(Link {
            kv: client.kv_client().max_decoding_message_size(MAX_ANSWER),
            lease: client.lease_client(),
            watch: client.watch_client().max_decoding_message_size(MAX_ANSWER),
            client,
            credentials,
            logins: tokio::sync::Mutex::new(0),
            logged_in: AtomicU64::new(0),
        })
    }

    pub(crate) fn kv(&self) -> KvClient {
        self.kv.clone()
    }

    pub(crate) fn lease(&self) -> LeaseClient {
        self.lease.clone()
    }

    pub(crate) fn watch(&self) -> WatchClient {
        self.watch.clone()
    }

    /// Logs in if there is a user and it has not been done yet; returns which login is in use.
    pub(crate) async fn login(&self) -> Result<u64, Failure> {
        if self.credentials.is_none() {
            return Ok(0);
        }
        match self.logged_in.load(Ordering::Acquire) {
            0 => self.login_again(0).await,
            login => Ok(login),
        }
    }

    /// Logs in anew, unless somebody did since `login`.
    pub(crate) async fn login_again(&self, login: u64) -> Result<u64, Failure> {
        let Some(credentials) = self.credentials.clone() else {
            return Err(Failure::new(
                coord_api::Class::Definite,
                ErrorKind::Unauthenticated("the store wants a user".into()),
            ));
        };
        let mut logins = self.logins.lock().await;
        if *logins == login {
            match self.client.clone().update_user(Some(credentials)).await {
                Ok(()) => {}
                // A store that asks nobody for a password accepts us, too.
                Err(etcd_client::Error::GRpcStatus(status)) if status.message().contains("not enabled") => {}
                Err(error) => {
                    // A login changes nothing at the store: whatever happened to it, the request itself was not sent.
                    let mut failure = Failure::of(&error, false);
                    failure.reason = Reason::Other;
                    return Err(failure);
                }
            }
            *logins += 1;
            self.logged_in.store(*logins, Ordering::Release);
        }
        Ok(*logins)
    }
}
