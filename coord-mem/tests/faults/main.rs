//! The faults, one behaviour per test, all in virtual time.

mod calls;
mod connection;
mod each;
mod leases;
mod lifecycle;

use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Class, Coordinator, CoordinatorExt, Create, CreateMode, Env, ErrorKind, Expect, Instant, Key, Operation, Target,
    Watch, WatchEvent,
};
use coord_mem::{Fault, GiveUp, MemClient, MemStore, Odds, StoreOptions};
use futures::{FutureExt, poll};

const TTL: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

fn store() -> MemStore {
    MemStore::new(&Env::simulated(7))
}

fn pair() -> (Arc<MemClient>, Arc<MemClient>) {
    let store = store();
    (store.client(), store.client())
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn create(client: &MemClient, text: &str) -> Create {
    Create::new(client.env(), key(text), "value", CreateMode::Persistent)
}

async fn exists(client: &MemClient, text: &str) -> bool {
    client.get(&key(text)).await.unwrap().is_some()
}

async fn event(watch: &mut Watch) -> WatchEvent {
    // An event that never comes fails the test instead of stopping it.
    let event = tokio::time::timeout(Duration::from_secs(86_400), watch.next()).await;
    event
        .expect("within a day")
        .expect("the watch goes on")
        .expect("without an error")
}

fn is_silent(watch: &mut Watch) -> bool {
    watch.next().now_or_never().is_none()
}
