//! A node that stays registered in etcd, whatever etcd does: `etcd_retry [ENDPOINT [TTL_SECONDS]]`. See its README.

use std::env::args;
use std::error::Error;
use std::time::Duration;

use coord_api::{Coordinator, Env, Registration, Registry, RegistryConfig, Session, SessionConfig};
use coord_etcd::{EtcdConfig, EtcdCoordinator};
use tracing_subscriber::EnvFilter;

const NODE: &str = "localhost:50000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .init();
    let endpoint = args().nth(1).unwrap_or_else(|| "127.0.0.1:2379".into());
    let ttl = args().nth(2).map_or(Ok(15), |seconds| seconds.parse())?;

    // None of this waits for etcd: it may be down, now or later.
    let coordinator = EtcdCoordinator::open(EtcdConfig::new([endpoint]), Env::system())?;
    let config = SessionConfig {
        name: NODE.into(),
        ttl: Duration::from_secs(ttl),
        ..SessionConfig::default()
    };
    let session = Session::open(coordinator.clone(), config)?;
    let registry = Registry::open(session.clone(), RegistryConfig::new(NODE))?;
    registry.register(Registration::new("nodes", NODE, NODE))?;

    // Nor does anything need to be done about an outage; this only tells of it.
    let mut states = session.subscribe();
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    println!("{:?}", session.health());
    loop {
        tokio::select! {
            stopped = &mut stop => break stopped?,
            changed = states.changed() => match changed {
                Some(state) => println!("{:?}", state.health()),
                None => return Err("the session has ended".into()),
            },
        }
    }

    // In this order: the entry goes, then the lease, then the connection.
    registry.close().await?;
    session.close().await?;
    coordinator.close().await?;
    println!("unregistered");
    Ok(())
}
