//! The loop against a store that only knows leases. The recipes' own tests, on a real driver, are those of `coord-mem`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::{Capabilities, Create, Entry, Env, Expect, Grant, Key, LeaseId, Standing, Target, Watch};

const CALL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Up,
    Down,
    Silent,
    Refusing,
}

/// The mood, the last lease, and when each ends.
type State = (Mood, u64, BTreeMap<u64, Instant>);

#[derive(Debug, Clone)]
struct Leases {
    env: Env,
    deadline: Duration,
    state: Arc<Mutex<State>>,
}

impl Leases {
    fn new() -> Arc<Leases> {
        Arc::new(Leases {
            env: Env::simulated(1),
            deadline: CALL,
            state: Arc::new(Mutex::new((Mood::Up, 0, BTreeMap::new()))),
        })
    }

    fn set(&self, mood: Mood) {
        self.state.lock().unwrap().0 = mood;
    }

    fn forget(&self, lease: LeaseId) -> bool {
        self.state.lock().unwrap().2.remove(&lease.0).is_some()
    }

    fn live(&self) -> usize {
        let now = self.env.now();
        self.state.lock().unwrap().2.values().filter(|end| **end > now).count()
    }

    async fn reach(&self, operation: Operation) -> Result<()> {
        let mood = self.state.lock().unwrap().0;
        match mood {
            Mood::Up => Ok(()),
            Mood::Down => Err(Error::not_sent(operation, None, ErrorKind::Unavailable("down".into()))),
            Mood::Refusing => {
                let denied = ErrorKind::PermissionDenied("an operator took the right away".into());
                Err(Error::definite(operation, None, denied))
            }
            Mood::Silent => {
                self.env.sleep(self.deadline).await;
                let late = ErrorKind::DeadlineExceeded(self.deadline);
                Err(Error::unknown(operation, None, late))
            }
        }
    }

    fn granted(&self, lease: u64, ttl: Duration) -> Grant {
        let valid_until = self.env.now() + ttl;
        self.state.lock().unwrap().2.insert(lease, valid_until);
        Grant {
            lease: LeaseId(lease),
            ttl,
            valid_until,
        }
    }
}

#[async_trait]
impl Coordinator for Leases {
    fn env(&self) -> &Env {
        &self.env
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            driver: "leases",
            max_ttl: Duration::from_secs(3600),
            expiry_slack: Duration::ZERO,
            renewals_per_ttl: 3,
            max_value: 1,
            call_deadline: CALL,
        }
    }
    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        let deadline = self.deadline.min(deadline);
        Arc::new(Leases {
            deadline,
            ..self.clone()
        })
    }
    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.reach(Operation::Grant).await?;
        let lease = {
            let mut state = self.state.lock().unwrap();
            state.1 += 1;
            state.1
        };
        Ok(self.granted(lease, ttl))
    }
    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.reach(Operation::Renew).await?;
        let end = self.state.lock().unwrap().2.get(&lease.0).copied();
        match end {
            Some(end) if end > self.env.now() => Ok(self.granted(lease.0, Duration::from_secs(15))),
            _ => Err(Error::definite(Operation::Renew, None, ErrorKind::LeaseLost(lease))),
        }
    }
    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.reach(Operation::Revoke).await?;
        self.forget(lease);
        Ok(())
    }
    async fn create(&self, _: &Create) -> Result<Entry> {
        unreachable!()
    }
    async fn abandon(&self, _: &Create) -> Result<()> {
        unreachable!()
    }
    async fn get(&self, _: &Key) -> Result<Option<Entry>> {
        unreachable!()
    }
    async fn get_latest(&self, _: &Key) -> Result<Option<Entry>> {
        unreachable!()
    }
    async fn children(&self, _: &Key) -> Result<Vec<Entry>> {
        unreachable!()
    }
    async fn update(&self, _: &Key, _: Bytes, _: Expect) -> Result<Entry> {
        unreachable!()
    }
    async fn delete(&self, _: &Key, _: Expect) -> Result<()> {
        unreachable!()
    }
    async fn standing(&self, _: &Entry) -> Result<Standing> {
        unreachable!()
    }
    async fn watch(&self, _: &Target) -> Result<Watch> {
        unreachable!()
    }
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

fn open(store: &Arc<Leases>) -> Session {
    let config = SessionConfig {
        backoff: Backoff {
            jitter: 0.0,
            ..Backoff::default()
        },
        ..SessionConfig::default()
    };
    Session::open(store.clone(), config).unwrap()
}

/// Fails instead of hanging.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(3600);
    tokio::time::timeout(limit, future).await.expect("it hangs")
}

fn seconds(from: Instant, to: Instant) -> f64 {
    (to - from).as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn a_lease_lives_over_many_ttls_and_ends_with_close() {
    let store = Leases::new();
    let session = open(&store);
    let lease = soon(session.connected()).await.unwrap();
    store.env.sleep(Duration::from_secs(600)).await;
    assert_eq!(session.lease().map(|now| now.epoch), Some(lease.epoch));
    assert!(session.valid_until(1).unwrap() > store.env.now() + Duration::from_secs(9));
    session.close().await.unwrap();
    session.close().await.unwrap();
    assert_eq!((session.lease(), store.live()), (None, 0));
    assert_eq!(soon(session.lost(1)).await, LossReason::Closed);
    assert_eq!(
        soon(session.connected()).await,
        Err(SessionClosed { why: Closure::Asked })
    );
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_loss_at_the_deadline_and_heals_in_the_next_epoch() {
    let store = Leases::new();
    let session = open(&store);
    let mut watch = session.subscribe();
    let start = store.env.now();
    assert!(matches!(soon(watch.changed()).await, Some(SessionState::Connected(_))));
    store.set(Mood::Silent);
    assert!(matches!(
        soon(watch.changed()).await,
        Some(SessionState::Suspended { .. })
    ));
    assert_eq!(seconds(start, store.env.now()), 7.5);
    assert_eq!(soon(session.lost(1)).await, LossReason::Unreachable);
    assert!((seconds(start, store.env.now()) - 14.7).abs() < 0.01);
    store.set(Mood::Up);
    assert_eq!(soon(session.connected()).await.unwrap().epoch, 2);
    // The slow reader is told of the loss first, although the next epoch lives.
    assert!(matches!(
        soon(watch.changed()).await,
        Some(SessionState::Lost { epoch: 1, .. })
    ));
    assert!(matches!(soon(watch.changed()).await, Some(SessionState::Connected(lease)) if lease.epoch == 2));
    store.env.sleep(Duration::from_secs(1)).await;
    assert_eq!(store.live(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_lease_is_lost_at_the_next_renewal() {
    let store = Leases::new();
    let session = open(&store);
    store.forget(soon(session.connected()).await.unwrap().lease);
    assert_eq!(soon(session.lost(1)).await, LossReason::Revoked);
    assert_eq!(soon(session.connected()).await.unwrap().epoch, 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_renewals_are_refused_expires_and_is_had_again_when_they_are_not() {
    let store = Leases::new();
    let session = open(&store);
    soon(session.connected()).await.unwrap();
    let start = store.env.now();
    store.set(Mood::Refusing);
    assert_eq!(soon(session.lost(1)).await, LossReason::Expired);
    assert!((seconds(start, store.env.now()) - 14.7).abs() < 0.01);
    store.env.sleep(Duration::from_secs(10)).await;
    store.set(Mood::Up);
    assert_eq!(soon(session.connected()).await.unwrap().epoch, 2);
}

#[tokio::test(start_paused = true)]
async fn the_clock_ends_the_epoch_although_the_loop_stands_still() {
    let store = Leases::new();
    let session = open(&store);
    soon(session.connected()).await.unwrap();
    store.env.pause();
    assert_eq!(soon(session.lost(1)).await, LossReason::ClockJumped);
    assert_eq!(session.lease(), None);
    store.env.resume();
    assert_eq!(soon(session.connected()).await.unwrap().epoch, 2);
    store.env.jump(Duration::from_secs(60));
    assert_eq!(soon(session.lost(2)).await, LossReason::ClockJumped);
    assert_eq!(soon(session.connected()).await.unwrap().epoch, 3);
}

#[tokio::test(start_paused = true)]
async fn it_starts_while_the_store_is_down_and_closes_by_its_deadline() {
    let store = Leases::new();
    store.set(Mood::Down);
    let session = open(&store);
    store.env.sleep(Duration::from_secs(10)).await;
    assert!(matches!(session.health(), Health::Lost { .. }));
    store.set(Mood::Up);
    soon(session.connected()).await.unwrap();
    assert_eq!(session.health(), Health::Healthy);
    store.set(Mood::Silent);
    let before = store.env.now();
    assert!(session.close().await.is_err());
    assert_eq!(store.env.now() - before, CALL);
}

#[tokio::test(start_paused = true)]
async fn the_limit_ends_it_and_says_so() {
    let store = Leases::new();
    store.set(Mood::Down);
    let backoff = Backoff {
        limit: Some(Duration::from_secs(20)),
        ..Backoff::default()
    };
    let config = SessionConfig {
        backoff,
        ..SessionConfig::default()
    };
    let session = Session::open(store, config).unwrap();
    assert_eq!(soon(session.connected()).await.unwrap_err().why, Closure::GaveUp);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_the_task_and_tells_the_readers() {
    let store = Leases::new();
    let session = open(&store);
    soon(session.connected()).await.unwrap();
    let (mut watch, lost) = (session.subscribe(), session.lost(1));
    drop(session.clone());
    assert!(watch.state().lease().is_some());
    drop(session);
    assert_eq!(lost.await, LossReason::Closed);
    assert!(soon(watch.changed()).await.unwrap().is_closed());
    assert_eq!(soon(watch.changed()).await, None);
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    assert_eq!(Arc::strong_count(&store), 1);
}

#[tokio::test]
async fn a_configuration_that_cannot_work_is_refused() {
    let config = SessionConfig {
        ttl: Duration::from_millis(10),
        ..SessionConfig::default()
    };
    let error = Session::open(Leases::new(), config).unwrap_err();
    assert!(error.to_string().contains("ttl is 10ms"), "{error}");
}
