//! One of many does the work: `cargo run --example leader -- etcd://localhost:2379`, as often as you like.

use coordkit::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or("mem://".into()); // or etcd://…, zk://…
    let coordinator = connect(&url)?;
    let session = Session::open(coordinator.clone(), SessionConfig::default())?;
    let election = Election::new(&session, ElectionConfig::new("/jobs/nightly".parse()?, "worker-1"));

    let leadership = election.campaign().await?; // waits for its turn, whatever the store does
    println!("leading with fencing token {}", leadership.token());
    tokio::select! {
        () = work(leadership.token()) => println!("done"),
        why = leadership.lost() => println!("stopped: {why}"), // before anybody else can lead
    }
    leadership.resign().await?;
    Ok(coordinator.close().await?)
}

async fn work(token: u64) {
    println!("hand {token} to whatever you write to, so that it can refuse an older one");
}
