//! Opening sessions, and proving that one has ended.

use std::time::Duration;

use coord_api::Env;
use zookeeper_client::{Client, CreateMode, Error as ZkError, SessionInfo, SessionState, StateWatcher};

use crate::ZkConfig;
use crate::conn::ended;

/// The first pause between two attempts to connect; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Pauses between attempts, so that many clients do not knock in step.
#[derive(Debug)]
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Pause {
        Pause(FIRST_PAUSE)
    }

    pub(crate) async fn wait(&mut self, env: &Env) {
        env.sleep(self.0 / 2 + env.random_duration(self.0 / 2)).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// One attempt at a session: the old one if it still lives.
pub(crate) async fn connect(
    config: &ZkConfig,
    timeout: Duration,
    session: Option<&SessionInfo>,
) -> Result<Client, ZkError> {
    let mut connector = config
        .connector(timeout)
        .map_err(|error| ZkError::UnexpectedError(error.to_string()))?;
    if let Some(session) = session {
        connector = connector.with_session(session.clone());
    }
    config.connect(connector).await
}

/// Ends a session and returns when the server has confirmed that it is gone, and with it everything that was sent on
/// it and not yet executed. Tries until then: give it a deadline.
///
/// That the client library says "expired" proves nothing, it says so on its own after 7/5 of the timeout.
pub(crate) async fn end(env: &Env, config: &ZkConfig, session: &SessionInfo, timeout: Duration) {
    let mut pause = Pause::new();
    loop {
        match connect(config, timeout, Some(session)).await {
            Err(ZkError::SessionExpired) => return,
            Err(error) => tracing::debug!(session = %session.id(), %error, "cannot ask whether the session has ended"),
            Ok(client) => {
                let states = client.state_watcher();
                drop(client);
                if closed(states).await {
                    return;
                }
            }
        }
        pause.wait(env).await;
    }
}

/// Waits for the end of a session whose client was let go; whether the server confirmed it.
pub(crate) async fn closed(states: StateWatcher) -> bool {
    ended(states).await == SessionState::Closed
}

/// Makes the chroot when it is missing.
pub(crate) async fn make_root(client: &Client, config: &ZkConfig) -> Result<(), ZkError> {
    let root = config.chroot();
    if root == "/" {
        return Ok(());
    }
    match client.clone().chroot("/") {
        Ok(whole) => whole.mkdir(root, &config.node(CreateMode::Persistent)).await,
        Err(_) => Err(ZkError::BadArguments(&"the chroot is not a path")),
    }
}
