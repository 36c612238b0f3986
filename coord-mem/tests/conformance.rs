//! The conformance suite on the driver in memory: in virtual time, with a proof that lags behind, over a slow wire, and in
//! real time.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Env, Result};
use coord_conformance::Opener;
use coord_mem::{MemStore, Odds, StoreOptions};

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

/// Requests and answers are under way for a while: a call that is dropped may have happened, or may still.
mod slow_wire {
    use super::*;

    struct SlowMemory(MemStore);

    #[async_trait::async_trait]
    impl Opener for SlowMemory {
        async fn open(&self) -> Result<Arc<dyn Coordinator>> {
            let client = self.0.client();
            client.faults().seeded(Odds {
                delay: 0.5,
                delay_answer: 0.5,
                longest: Duration::from_millis(5),
                ..Odds::default()
            });
            Ok(client)
        }
    }

    coord_conformance::conformance_tests!(paused: SlowMemory(MemStore::new(&Env::simulated(3))));
}

mod real_time {
    use super::*;

    coord_conformance::conformance_tests!(multi_thread: Memory(MemStore::new(&Env::system())));
}
