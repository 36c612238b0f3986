//! `control STORE ADDRESS KEY TTL_MS`: says that it is ready, takes a lease when its standard input ends, makes KEY under
//! it, says when the lease was answered (in nanoseconds of CLOCK_BOOTTIME) and never renews it. It is to be killed then:
//! when the entry goes tells what the store itself makes of a lease whose holder is gone.

use std::error::Error;
use std::time::Duration;

use coord_api::{Create, CreateMode, Key};
use coord_election_tests::Store;
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [store, address, key, ttl] = &args[..] else {
        return Err("STORE ADDRESS KEY TTL_MS".into());
    };
    let (key, ttl) = (Key::new(key)?, Duration::from_millis(ttl.parse()?));
    let coordinator = Store::named(store).ok_or("no such store")?.open(address)?;
    coordinator.get(&key).await?;
    println!("ready");
    tokio::io::stdin().read_to_end(&mut vec![]).await?;
    let grant = coordinator.grant(ttl).await?;
    let answered = coordinator.env().now().since_start();
    let mode = CreateMode::Ephemeral(grant.lease);
    coordinator
        .create(&Create::new(coordinator.env(), key, "", mode))
        .await?;
    println!("{}", answered.as_nanos());
    std::future::pending().await
}
