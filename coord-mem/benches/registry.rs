//! 10,000 registrations on a store in memory. The store lives in the same process: its memory is counted, too.

use std::time::Duration;

use coord_api::Env;
use coord_mem::MemStore;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let store = MemStore::new(&Env::system());
    let costs = coord_recipes_tests::registry_costs(store.client(), Duration::from_secs(4)).await;
    costs.print("memory");
}
