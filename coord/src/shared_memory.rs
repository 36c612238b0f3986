use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use coord_api::{Coordinator, Env, Prefixed, Result};
use coord_mem::{MemStore, StoreOptions, WeakMemStore};

use crate::Config;

/// The stores of this process by name. They are not held: a store goes with its last client.
static STORES: OnceLock<Mutex<HashMap<String, WeakMemStore>>> = OnceLock::new();

/// One URL, one store: two parts of a program that connect to the same name must not both become leader.
pub(crate) fn open(config: &Config) -> Result<Arc<dyn Coordinator>> {
    let name = config.store.hosts.first().cloned().unwrap_or_default();
    let mut stores = STORES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    stores.retain(|_, store| store.upgrade().is_some());
    let store = match stores.get(&name).and_then(WeakMemStore::upgrade) {
        Some(store) => store,
        None => {
            let options = StoreOptions {
                call_deadline: config.effective_call_deadline(),
                ..StoreOptions::default()
            };
            let store = MemStore::with_options(&Env::system(), options);
            stores.insert(name, store.downgrade());
            store
        }
    };
    let client: Arc<dyn Coordinator> = store.client();
    let client = client.within(config.effective_call_deadline());
    Ok(if config.store.prefix.is_root() {
        client
    } else {
        Arc::new(Prefixed::new(client, config.store.prefix.clone()))
    })
}
