use std::sync::{Arc, Mutex, PoisonError};

use coord_api::{Env, ErrorKind, Task};
use tokio::runtime::Handle;
use tokio::sync::watch;
use zookeeper_client::{Client, Error as ZkError, SessionInfo};

use crate::ZkConfig;
use crate::conn::{Conn, commit_check, ended};
use crate::faults;
use crate::session::{self, Pause};

/// The connection for reads, persistent writes and watches, whichever it is at the moment.
///
/// There is at most one session of it at a time: a new one comes into service only after the server has confirmed
/// that the one before is gone, so nothing that was sent on that one can still arrive.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    current: watch::Receiver<Option<Arc<Conn>>>,
    trouble: Arc<Mutex<Option<ErrorKind>>>,
}

impl Shared {
    /// Starts to connect, and to connect again whenever the session is lost, until the task is dropped.
    pub(crate) fn start(config: Arc<ZkConfig>, env: &Env, runtime: Handle) -> (Shared, Task) {
        let (sender, current) = watch::channel(None);
        let trouble = Arc::<Mutex<Option<ErrorKind>>>::default();
        let keeper = Keeper {
            config,
            env: env.clone(),
            runtime,
            sender,
            trouble: trouble.clone(),
        };
        (Shared { current, trouble }, env.spawn(keeper.keep()))
    }

    /// Waits for a session that is connected.
    pub(crate) async fn conn(&self) -> Arc<Conn> {
        if let Some(conn) = self.now().filter(|conn| conn.is_connected()) {
            return conn;
        }
        let mut current = self.current.clone();
        loop {
            let conn = current.borrow_and_update().clone();
            if let Some(conn) = &conn {
                if conn.is_connected() {
                    return conn.clone();
                }
                tokio::select! {
                    biased;
                    Ok(()) = conn.connected() => return conn.clone(),
                    Ok(()) = current.changed() => continue,
                    // This session is over, and the keeper is gone, too.
                    else => {}
                }
            }
            if current.changed().await.is_err() {
                // The keeper is gone, so the coordinator is closed: whoever waits is told elsewhere.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The session in service, connected or not.
    pub(crate) fn now(&self) -> Option<Arc<Conn>> {
        self.current.borrow().clone()
    }

    /// Why there is no connection, as far as that is known.
    pub(crate) fn trouble(&self) -> Option<ErrorKind> {
        match self.now() {
            Some(conn) if conn.is_connected() => None,
            Some(conn) => Some(ErrorKind::Unavailable(faults::state_hint(conn.state()).into())),
            None => self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

struct Keeper {
    config: Arc<ZkConfig>,
    env: Env,
    runtime: Handle,
    sender: watch::Sender<Option<Arc<Conn>>>,
    trouble: Arc<Mutex<Option<ErrorKind>>>,
}

impl Keeper {
    async fn keep(self) {
        let mut last: Option<SessionInfo> = None;
        let mut pause = Pause::new();
        loop {
            match session::connect(&self.config, self.config.session_timeout, last.as_ref()).await {
                // Confirmed by the server: from here on a new session cannot be overtaken by the old one.
                Err(ZkError::SessionExpired) if last.is_some() => {
                    last = None;
                    continue;
                }
                Err(error) => {
                    self.note(&error);
                    pause.wait(&self.env).await;
                    continue;
                }
                Ok(client) => {
                    last = Some(client.session().clone());
                    if !self.prepare(&client).await {
                        pause.wait(&self.env).await;
                        continue;
                    }
                    pause = Pause::new();
                    let conn = Arc::new(Conn::new(client, &self.env, self.runtime.clone()));
                    self.sender.send_replace(Some(conn.clone()));
                    let state = ended(conn.states()).await;
                    tracing::debug!(session = %conn.session().id(), %state, "shared session ended");
                    conn.shut();
                    self.sender.send_replace(None);
                }
            }
        }
    }

    /// Brings a session up to date, so that nobody goes back in time, and makes the root. False if it ended meanwhile.
    async fn prepare(&self, client: &Client) -> bool {
        let mut pause = Pause::new();
        loop {
            let ready = match commit_check(client).await {
                Ok(()) => session::make_root(client, &self.config).await,
                Err(barrier) => Err(barrier.into()),
            };
            match ready {
                Ok(()) => return true,
                // Without the right to make the root it may still be there, and the calls will tell.
                Err(ZkError::NoAuth) => return true,
                Err(error) => self.note(&error),
            }
            if client.state().is_terminated() {
                return false;
            }
            pause.wait(&self.env).await;
        }
    }

    fn note(&self, error: &ZkError) {
        tracing::debug!(%error, "not connected");
        let kind = match faults::kind(error) {
            kind @ (ErrorKind::Unauthenticated(_) | ErrorKind::PermissionDenied(_)) => kind,
            _ => ErrorKind::Unavailable(format!("no server of {} accepts us: {error}", self.config.servers)),
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
    }
}
