//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Env, Expect, Grant, Key, Task, Watch, WatchEvent};
use coord_harness::{ZkEnsemble, ZkOptions, eventually};
use coord_zk::{ZkConfig, ZkCoordinator};
use zookeeper_client::{Client, SessionInfo, SessionState};

/// The harness's default.
pub(crate) const TICK: Duration = Duration::from_millis(200);

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).expect("the tests' keys are valid")
}

/// For servers with the harness's default tick.
pub(crate) fn config(servers: impl Into<String>) -> ZkConfig {
    ZkConfig {
        tick: TICK,
        ..ZkConfig::new(servers)
    }
}

pub(crate) fn open(config: ZkConfig) -> Arc<dyn Coordinator> {
    ZkCoordinator::open(config, Env::system()).expect("a valid configuration")
}

pub(crate) async fn ensemble(nodes: usize) -> ZkEnsemble {
    ZkEnsemble::start(ZkOptions {
        nodes,
        tick: TICK,
        ..ZkOptions::default()
    })
    .await
}

/// Calls may end this much after their deadline, on a machine that does other things, too.
const LATE: Duration = Duration::from_millis(1500);

/// How long healing may take.
pub(crate) const HEAL: Duration = Duration::from_secs(30);

/// The result of a call, which has to come by the coordinator's deadline.
pub(crate) async fn in_time<T>(coordinator: &dyn Coordinator, call: impl Future<Output = T>) -> T {
    let deadline = coordinator.capabilities().call_deadline;
    let started = std::time::Instant::now();
    let output = call.await;
    let took = started.elapsed();
    assert!(took <= deadline + LATE, "{took:?} with a deadline of {deadline:?}");
    output
}

/// Waits until reads, writes and leases work again.
pub(crate) async fn heals(coordinator: &Arc<dyn Coordinator>) {
    eventually(HEAL, "everything works again", async || {
        let name = key(&format!("/healed-{}", coordinator.env().nonce()));
        coordinator.create_persistent(&name, "x").await?;
        coordinator.delete(&name, Expect::Any).await?;
        let (grant, _) = coordinator.create_with_ttl(&name, "y", Duration::from_secs(2)).await?;
        coordinator.get(&name).await?;
        coordinator.renew(grant.lease).await?;
        coordinator.revoke(grant.lease).await
    })
    .await;
}

/// Keeps a lease alive for as long as that can be done.
pub(crate) fn keep(coordinator: &Arc<dyn Coordinator>, grant: Grant) -> Task {
    let coordinator = coordinator.clone();
    let env = coordinator.env().clone();
    env.clone().spawn(async move {
        loop {
            env.sleep(grant.ttl / 4).await;
            if let Err(error) = coordinator.renew(grant.lease).await
                && error.is_lease_lost()
            {
                return;
            }
        }
    })
}

/// The next event of a watch.
pub(crate) async fn next(watch: &mut Watch) -> WatchEvent {
    tokio::time::timeout(HEAL, watch.next())
        .await
        .expect("an event in time")
        .expect("the watch goes on")
        .expect("no error")
}

/// Reads a watch of one key until its value is this one.
pub(crate) async fn until_value(watch: &mut Watch, value: &str) {
    loop {
        let found = match next(watch).await {
            WatchEvent::State(entries) | WatchEvent::Resync(entries) => entries.into_iter().next(),
            WatchEvent::Put(entry) => Some(entry),
            WatchEvent::Delete { .. } => None,
        };
        if found.is_some_and(|entry| entry.value == value) {
            return;
        }
    }
}

/// Ends a session as an operator would: by closing it from a second connection.
pub(crate) async fn force_expiry(ensemble: &ZkEnsemble, session: &SessionInfo) {
    // The driver takes the session back as long as it lives: whoever gets the close through wins.
    eventually(HEAL, "the session is closed", async || {
        let connector = Client::connector().with_fail_eagerly().with_session(session.clone());
        match connector.connect(&ensemble.connect_string()).await {
            Err(error) => error == zookeeper_client::Error::SessionExpired,
            Ok(second) => {
                let mut states = second.state_watcher();
                drop(second);
                while !states.state().is_terminated() {
                    states.changed().await;
                }
                states.state() == SessionState::Closed
            }
        }
    })
    .await;
}
