//! A service that finds its own cluster: `bootstrap_service STORE_URL [SERVICE_PORT]`. See its README.
//!
//! Each copy greets whoever connects, and knows who else is there and which copy is to do what only one may do.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use coord_bootstrap::{Bootstrap, Config};
use coord_cluster::{ClusterNode, ClusterView, Settings};
use coordkit::Key;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("bootstrap_service STORE_URL [SERVICE_PORT]")?;
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;

    // The membership, which is told where to go by the bootstrap alone.
    let mut settings = Settings::new("127.0.0.1:0".parse()?);
    settings.config.rejoin = false;
    let node = Arc::new(ClusterNode::start(settings).await?);

    // None of this waits for the store: it may be down, now or later.
    let coordinator = coordkit::connect(&store)?;
    let config = Config {
        down_after: Some(Duration::from_secs(10)),
        ..Config::new(Key::new("/greeters")?, Duration::from_secs(10))
    };
    let bootstrap = Bootstrap::start(coordinator.clone(), node.clone(), config)?;

    // The service serves from the beginning; what it needs the cluster for, it asks the view.
    let service = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("serving on {}", service.local_addr()?);
    let mut states = bootstrap.watch();
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            stopped = &mut stop => break stopped?,
            accepted = service.accept() => {
                let (mut stream, _) = accepted?;
                // Whoever does not read it does not want it.
                let _ = stream.write_all(greeting(&node.view()).as_bytes()).await;
            }
            changed = states.changed() => {
                changed?;
                let state = states.borrow_and_update().clone();
                println!("{state}");
                if state.is_stopped() {
                    return Err(state.to_string().into());
                }
            }
        }
    }

    // In this order: out of the cluster, in which nobody misses us; then the connection.
    println!("{}", bootstrap.leave(Duration::from_secs(10)).await);
    coordinator.close().await?;
    Ok(())
}

/// What this copy knows of the others.
fn greeting(view: &ClusterView) -> String {
    let up = view.up().count();
    let task = if view.is_leader() {
        ", and I do what only one may do"
    } else {
        ""
    };
    format!("hello from {}, one of {up}{task}\n", view.self_node.address)
}
