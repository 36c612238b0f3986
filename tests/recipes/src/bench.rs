use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_api::{
    Coordinator, CoordinatorExt, Key, Operation, Registration, Registry, RegistryConfig, Session, SessionConfig,
};
use futures::{StreamExt, TryStreamExt};

use crate::Spy;

const REGISTRATIONS: usize = 10_000;
/// Renewals are counted over so many ttls.
const TTLS: u32 = 3;

/// What 10,000 registrations cost on one driver, as ratios where a ratio tells more than the machine's speed.
pub struct RegistryCosts {
    /// Renewals per ttl with one registration.
    renewals_of_one: f64,
    /// Renewals per ttl with all of them.
    renewals: f64,
    /// Bytes of this process's memory per registration.
    memory: u64,
    /// As many bare creates, as many at a time as the registry does.
    bare: Duration,
    /// From the first wish until all are registered.
    first: Duration,
    /// From the new lease until all are back.
    again: Duration,
}

/// Measures on one driver. In real time; needs a fresh store, as it leaves parents behind.
pub async fn registry_costs(coordinator: Arc<dyn Coordinator>, ttl: Duration) -> RegistryCosts {
    let bare = bare_creates(&coordinator, ttl).await;
    let spy = Spy::new(coordinator);
    let config = SessionConfig {
        ttl,
        ..SessionConfig::default()
    };
    let session = Session::open(spy.clone(), config).expect("the session opens");
    let registry = Registry::open(session.clone(), RegistryConfig::new("bench")).expect("the registry opens");
    registry.register(registration(0)).expect("a valid registration");
    registry.settled().await.expect("it is registered");
    let renewals_of_one = renewals_per_ttl(&spy, &session).await;

    let (memory, started) = (resident(), Instant::now());
    for id in 1..REGISTRATIONS {
        registry.register(registration(id)).expect("a valid registration");
    }
    registry.settled().await.expect("all are registered");
    let first = started.elapsed();
    let memory = resident().saturating_sub(memory) / REGISTRATIONS as u64;
    let renewals = renewals_per_ttl(&spy, &session).await;

    let lease = session.lease().expect("a live lease");
    spy.revoke(lease.lease).await.expect("the lease is revoked");
    session.check();
    session.lost(lease.epoch).await;
    session.connected().await.expect("another lease");
    let started = Instant::now();
    registry.settled().await.expect("all are back");
    let again = started.elapsed();
    registry.close().await.ok();
    session.close().await.expect("the session closes");
    RegistryCosts {
        renewals_of_one,
        renewals,
        memory,
        bare,
        first,
        again,
    }
}

/// The same creates without a registry.
async fn bare_creates(coordinator: &Arc<dyn Coordinator>, ttl: Duration) -> Duration {
    let grant = coordinator.grant(ttl).await.expect("a lease");
    let renewals = async {
        loop {
            coordinator.env().sleep(ttl / 4).await;
            coordinator.renew(grant.lease).await.expect("the lease lives");
        }
    };
    let started = Instant::now();
    let creates = futures::stream::iter(0..REGISTRATIONS)
        .map(|id| async move {
            let key = Key::new(format!("/bare/bench/{id}")).expect("a valid key");
            coordinator.create_ephemeral(&key, "x".repeat(100), grant.lease).await
        })
        .buffer_unordered(RegistryConfig::new("").pipeline)
        .try_for_each(|_| async { Ok(()) });
    tokio::select! {
        created = creates => created.expect("all are created"),
        () = renewals => {}
    }
    let took = started.elapsed();
    coordinator.revoke(grant.lease).await.expect("the lease is revoked");
    took
}

fn registration(id: usize) -> Registration {
    Registration::new("bench", id.to_string(), "10.0.0.1:80").with("zone", "a")
}

async fn renewals_per_ttl(spy: &Spy, session: &Session) -> f64 {
    let ttl = session.lease().expect("a live lease").ttl;
    let before = spy.calls(Operation::Renew).len();
    spy.env().sleep(ttl * TTLS).await;
    (spy.calls(Operation::Renew).len() - before) as f64 / f64::from(TTLS)
}

/// The process's resident memory in bytes; 0 where that cannot be told.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

impl RegistryCosts {
    /// One line of the table in `docs/session.md`.
    pub fn print(&self, driver: &str) {
        let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        println!(
            "registry, {REGISTRATIONS} entries, {driver}: renewals per ttl {:.1} (with one entry {:.1}), {} bytes each, \
             registering {:.2} s = {:.2} of bare creates, putting back {:.2} s = {:.2} of registering",
            self.renewals,
            self.renewals_of_one,
            self.memory,
            self.first.as_secs_f64(),
            ratio(self.first, self.bare),
            self.again.as_secs_f64(),
            ratio(self.again, self.first),
        );
    }
}
