//! The conformance suite on the driver in memory: in virtual time, with a proof that lags behind, and in real time.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Result};
use coord_conformance::Opener;
use coord_mem::{MemStore, StoreOptions};

struct Memory(MemStore);

#[async_trait::async_trait]
impl Opener for Memory {
    async fn open(&self) -> Result<Arc<dyn Coordinator>> {
        Ok(self.0.client())
    }
}

mod virtual_time {
    use super::*;

    coord_conformance::conformance_tests!(paused: Memory(MemStore::new(&Env::simulated(1))));
}

mod lagging_proof {
    use super::*;

    fn store() -> MemStore {
        let options = StoreOptions {
            proof_lag: Duration::from_millis(500),
            ..StoreOptions::default()
        };
        MemStore::with_options(&Env::simulated(2), options)
    }

    coord_conformance::conformance_tests!(paused: Memory(store()));
}

mod real_time {
    use super::*;

    coord_conformance::conformance_tests!(multi_thread: Memory(MemStore::new(&Env::system())));
}
