use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coord_api::Env;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Client, MultiWriteError, SessionInfo, SessionState, StateWatcher};

use crate::call::Call;
use crate::faults;
use crate::flight::{Drains, Flight};

/// How many requests may be on their way on one session; more wait for their turn, within their deadline.
const IN_FLIGHT: usize = 256;

/// One ZooKeeper session. Nothing is handed to the client library while it is disconnected: it would queue there
/// without bound, and be executed after everybody has given up.
#[derive(Debug)]
pub(crate) struct Conn {
    client: Mutex<Option<Arc<Client>>>,
    session: SessionInfo,
    timeout: Duration,
    states: StateWatcher,
    permits: Arc<Semaphore>,
    drains: Mutex<Option<Arc<Drains>>>,
    shut: CancellationToken,
}

/// The session has ended or was closed; nothing was sent.
#[derive(Debug)]
pub(crate) struct Over;

impl Conn {
    pub(crate) fn new(client: Client, env: &Env, runtime: Handle) -> Conn {
        Conn {
            session: client.session().clone(),
            timeout: client.session_timeout(),
            states: client.state_watcher(),
            client: Mutex::new(Some(Arc::new(client))),
            permits: Arc::new(Semaphore::new(IN_FLIGHT)),
            drains: Mutex::new(Some(Drains::new(env, runtime))),
            shut: CancellationToken::new(),
        }
    }

    pub(crate) fn session(&self) -> &SessionInfo {
        &self.session
    }

    /// The session timeout that the server granted.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn state(&self) -> SessionState {
        self.states.peek_state()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state() == SessionState::SyncConnected && !self.shut.is_cancelled()
    }

    /// Waits until requests can be sent.
    pub(crate) async fn connected(&self) -> Result<(), Over> {
        let mut states = None;
        loop {
            if self.shut.is_cancelled() {
                return Err(Over);
            }
            match self.state() {
                SessionState::SyncConnected => return Ok(()),
                state if state.is_terminated() => return Err(Over),
                _ => {}
            }
            // The watcher coalesces: look at the state itself after every change.
            let states = states.get_or_insert_with(|| self.states.clone());
            if states.state() == SessionState::SyncConnected || states.peek_state().is_terminated() {
                continue;
            }
            tokio::select! {
                _ = states.changed() => {}
                () = self.shut.cancelled() => {}
            }
        }
    }

    /// To follow the session without holding it.
    pub(crate) fn states(&self) -> StateWatcher {
        self.states.clone()
    }

    /// Sends a read. `make` has to send its request in its first poll.
    pub(crate) async fn read<T, F, Fut>(&self, make: F) -> Result<T, Over>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Client>) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        self.send(None, make).await
    }

    /// Sends a write: from then on the outcome of the call is not known, until it says that it is settled.
    pub(crate) async fn write<T, F, Fut>(&self, call: &Call, make: F) -> Result<T, Over>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Client>) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        self.send(Some(call), make).await
    }

    async fn send<T, F, Fut>(&self, call: Option<&Call>, make: F) -> Result<T, Over>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Client>) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        let (permit, client, drains) = loop {
            let permit = match self.permits.clone().try_acquire_owned() {
                Ok(permit) if self.is_connected() => permit,
                at_once => {
                    drop(at_once);
                    self.connected().await?;
                    self.permits.clone().acquire_owned().await.map_err(|_| Over)?
                }
            };
            // It may have taken long: look again.
            if self.is_connected() {
                let drains = lock(&self.drains).clone().ok_or(Over)?;
                break (permit, self.client().ok_or(Over)?, drains);
            }
        };
        if let Some(call) = call {
            call.sent();
        }
        Ok(Flight::new(make(client), permit, &drains).await)
    }

    /// A quorum transaction that changes nothing. Once answered, what was sent on this session before has been
    /// executed or never will be, and what is read on it afterwards is as new as anything that had finished when it was
    /// sent.
    pub(crate) async fn barrier(&self) -> Result<(), Barrier> {
        match self.read(|client| async move { commit_check(&client).await }).await {
            Err(Over) => Err(Barrier::Over),
            Ok(result) => result,
        }
    }

    /// Lets go of the session, so that the client library closes it once nothing is on its way any more. The watcher
    /// tells when the server has confirmed.
    pub(crate) fn shut(&self) -> StateWatcher {
        self.shut.cancel();
        self.permits.close();
        lock(&self.drains).take();
        lock(&self.client).take();
        self.states.clone()
    }

    fn client(&self) -> Option<Arc<Client>> {
        lock(&self.client).clone()
    }
}

/// Why a barrier failed.
#[derive(Debug)]
pub(crate) enum Barrier {
    /// The session has ended.
    Over,
    /// The connection was lost: try again.
    Lost(zookeeper_client::Error),
}

impl From<Barrier> for zookeeper_client::Error {
    fn from(barrier: Barrier) -> Self {
        match barrier {
            Barrier::Lost(error) => error,
            Barrier::Over => zookeeper_client::Error::SessionExpired,
        }
    }
}

/// The transaction behind [`Conn::barrier`]; it has left when this returns.
pub(crate) fn commit_check<'a>(client: &'a Client) -> impl Future<Output = Result<(), Barrier>> + Send + use<'a> {
    let mut writer = client.new_multi_writer();
    let commit = writer.add_check_version("/", -1).map(|()| writer.commit());
    async move { executed(commit.map_err(Barrier::Lost)?.await) }
}

/// One whose check fails is a transaction, too: its refusal goes through the quorum. One that is not accepted at all (a
/// server that throttles, a session that is being closed or has moved) proves nothing.
fn executed<T>(answer: Result<T, MultiWriteError>) -> Result<(), Barrier> {
    match answer {
        Ok(_) => Ok(()),
        Err(MultiWriteError::OperationFailed { source, .. }) if faults::is_refusal(&source) => Ok(()),
        Err(MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source }) => {
            Err(Barrier::Lost(source))
        }
    }
}

/// Waits for the end of a session.
pub(crate) async fn ended(mut states: StateWatcher) -> SessionState {
    loop {
        let state = states.state();
        if state.is_terminated() {
            return state;
        }
        states.changed().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use zookeeper_client::Error as ZkError;

    use super::*;

    #[test]
    fn only_what_went_through_the_quorum_is_a_barrier() {
        let request = |source| executed::<()>(Err(MultiWriteError::RequestFailed { source }));
        let check = |source| executed::<()>(Err(MultiWriteError::OperationFailed { index: 0, source }));
        assert!(executed(Ok(())).is_ok());
        // The root is gone, or not ours: the leader looked, and said so in order.
        assert!(check(ZkError::NoNode).is_ok() && check(ZkError::NoAuth).is_ok());
        assert!(request(ZkError::ConnectionLoss).is_err());
        assert!(request(ZkError::Throttled).is_err() && check(ZkError::Throttled).is_err());
        assert!(check(ZkError::SessionExpired).is_err() && check(ZkError::SessionMoved).is_err());
    }
}
