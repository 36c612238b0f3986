use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Backoff, Coordinator, CoordinatorExt, Key, LossReason, Operation, Session, SessionConfig, SessionState,
};

use crate::{Spy, World};

/// A session with the world's ttl and delays without jitter.
pub(crate) fn open(world: &dyn World, coordinator: Arc<dyn Coordinator>) -> Session {
    let backoff = Backoff {
        jitter: 0.0,
        ..Backoff::default()
    };
    let config = SessionConfig {
        ttl: world.ttl(),
        backoff,
        ..SessionConfig::default()
    };
    Session::open(coordinator, config).unwrap()
}

fn key(name: &str) -> Key {
    Key::root().child(name).unwrap()
}

pub(crate) async fn close_stops_the_loop(world: Arc<dyn World>) {
    let (spy, other) = (Spy::new(world.open().await), world.open().await);
    let session = open(&*world, spy.clone());
    let lease = session.connected().await.unwrap();
    spy.create_ephemeral(&key("entry"), "", lease.lease).await.unwrap();
    session.close().await.unwrap();
    session.close().await.unwrap();
    assert!(session.state().is_closed());
    assert_eq!(session.lost(lease.epoch).await, LossReason::Closed);
    assert_eq!(
        other.get_latest(&key("entry")).await.unwrap(),
        None,
        "it goes with close, not with the ttl"
    );
    let calls = (spy.calls(Operation::Grant).len(), spy.calls(Operation::Renew).len());
    spy.env().sleep(world.ttl() * 2).await;
    assert_eq!(
        (spy.calls(Operation::Grant).len(), spy.calls(Operation::Renew).len()),
        calls
    );
}

pub(crate) async fn an_outage_heals_with_the_documented_delays(world: Arc<dyn World>) {
    let spy = Spy::new(world.open().await);
    let env = spy.env().clone();
    let session = open(&*world, spy.clone());
    session.connected().await.unwrap();
    let mut watch = session.subscribe();
    for (epoch, delays) in [(1, vec![1, 2, 4]), (2, vec![1, 2])] {
        world.stop().await;
        let first_new = spy.calls(Operation::Grant).len();
        assert_eq!(session.lost(epoch).await, LossReason::Unreachable);
        // By when the loss was due, not by when this test got to see it: the loop's delay begins no earlier.
        let SessionState::Lost { since: lost, .. } = session.state() else {
            panic!("{:?} although the store is down", session.state());
        };
        // Observe the delays up to the one before the last, then bring the store back.
        while spy.calls(Operation::Grant).len() < first_new + delays.len() - 1 {
            env.sleep(Duration::from_millis(20)).await;
        }
        world.start().await;
        assert_eq!(session.connected().await.unwrap().epoch, epoch + 1);
        let mut before = lost;
        for (delay, grant) in delays.iter().zip(&spy.calls(Operation::Grant)[first_new..]) {
            // A failed attempt takes up to its deadline; the delay comes after that.
            let (least, most) = (Duration::from_secs(*delay), spy.capabilities().call_deadline);
            let waited = *grant - before;
            let expected = least..=least + most + world.tolerance();
            assert!(
                (waited + Duration::from_millis(5)) >= *expected.start() && waited <= *expected.end(),
                "epoch {epoch}: waited {waited:?}, expected {expected:?}"
            );
            before = *grant;
        }
    }
    // A reader that slept through all of it is told of the loss first.
    assert!(matches!(
        watch.changed().await,
        Some(SessionState::Lost { epoch: 1, .. })
    ));
    assert!(matches!(watch.changed().await, Some(SessionState::Connected(lease)) if lease.epoch == 3));
    session.close().await.unwrap();
}

pub(crate) async fn a_store_paused_past_the_ttl_is_a_loss_and_heals(world: Arc<dyn World>) {
    let session = open(&*world, world.open().await);
    let lease = session.connected().await.unwrap();
    world.pause().await;
    assert_eq!(session.lost(lease.epoch).await, LossReason::Unreachable);
    session.coordinator().env().sleep(world.ttl()).await;
    world.resume().await;
    assert_eq!(session.connected().await.unwrap().epoch, lease.epoch + 1);
    session.close().await.unwrap();
}

pub(crate) async fn a_black_hole_is_a_loss_on_time(world: Arc<dyn World>) {
    let session = open(&*world, world.open().await);
    let env = session.coordinator().env().clone();
    let mut watch = session.subscribe();
    let lease = session.connected().await.unwrap();
    watch.changed().await.unwrap();
    world.swallow().await;
    assert!(matches!(watch.changed().await, Some(SessionState::Suspended { .. })));
    let deadline = session.lease().unwrap().good_until();
    assert_eq!(watch.changed().await.map(|state| state.lease()), Some(None));
    let late = env.now() - deadline;
    assert!(late <= world.tolerance() && env.now() >= deadline, "{late:?} late");
    assert_eq!(session.lost(lease.epoch).await, LossReason::Unreachable);
    world.heal().await;
    assert_eq!(session.connected().await.unwrap().epoch, lease.epoch + 1);
    session.close().await.unwrap();
}

pub(crate) async fn a_revoked_lease_is_replaced(world: Arc<dyn World>) {
    let session = open(&*world, world.open().await);
    let env = session.coordinator().env().clone();
    let lease = session.connected().await.unwrap();
    world.revoke(lease.lease).await;
    let revoked = env.now();
    assert_eq!(session.lost(lease.epoch).await, LossReason::Revoked);
    assert!(
        env.now() - revoked <= world.ttl() / 2,
        "noticed at the next renewal at the latest"
    );
    assert_eq!(session.connected().await.unwrap().epoch, lease.epoch + 1);
    session.close().await.unwrap();
}

pub(crate) async fn a_clock_jump_is_a_loss(world: Arc<dyn World>) {
    let session = open(&*world, world.open_movable().await);
    let env = session.coordinator().env().clone();
    let lease = session.connected().await.unwrap();
    env.jump(world.ttl());
    assert_eq!(session.lease(), None, "at once, not when the loop gets to it");
    assert_eq!(session.lost(lease.epoch).await, LossReason::ClockJumped);
    assert_eq!(session.connected().await.unwrap().epoch, lease.epoch + 1);
    session.close().await.unwrap();
}

pub(crate) async fn closing_while_the_store_is_down_ends_by_its_deadline(world: Arc<dyn World>) {
    let session = open(&*world, world.open().await);
    let env = session.coordinator().env().clone();
    session.connected().await.unwrap();
    world.swallow().await;
    let before = env.now();
    assert!(session.close().await.is_err(), "the store could not be told");
    let deadline = session.coordinator().capabilities().call_deadline;
    assert!(env.now() - before <= deadline + world.tolerance());
    assert!(session.state().is_closed());
    world.heal().await;
}
