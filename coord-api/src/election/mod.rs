mod campaign;
mod claim;
mod config;
mod event;
mod events;
mod identity;
mod leadership;
mod observe;
mod own;
mod pace;
mod release;
mod run;
mod shared;
mod term;

use std::fmt;
use std::sync::Arc;

use crate::{Env, Session};
pub use config::{ElectionConfig, Recipe};
pub use event::{ElectionEvent, Unelected};
pub use events::ElectionEvents;
pub use identity::Leader;
pub use leadership::Leadership;
pub use observe::{Observation, Observer};
pub(crate) use pace::Pace;
use shared::Shared;
pub use term::Term;

#[doc = include_str!("election.md")]
pub struct Election {
    shared: Arc<Shared>,
}

// === impl Election ===

impl Election {
    /// One candidate of the election. Nothing is sent before it [campaigns](Election::campaign).
    pub fn new(session: &Session, config: ElectionConfig) -> Election {
        Election {
            shared: Arc::new(Shared::new(session, config)),
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &ElectionConfig {
        &self.shared.config
    }

    /// Who leads. For those who take no part at all, [`Observer::new`] needs no session.
    pub fn observe(&self) -> Observer {
        let Shared {
            coordinator, config, ..
        } = &*self.shared;
        Observer::new(coordinator.clone(), config.key.clone(), config.recipe)
    }

    /// What happens from now on: elected, unelected, another leader, work that overran. Costs a watch of all
    /// candidates while it is held.
    pub fn events(&self) -> ElectionEvents {
        ElectionEvents {
            own: self.shared.events.subscribe(),
            observer: self.observe(),
        }
    }

    /// Ends it for good: campaigns end with [`Closed`](crate::ErrorKind::Closed), a leadership is lost, and work of
    /// [`run_while_leader`](Election::run_while_leader) is told to stop. Returns when all of them have ended (they must
    /// be running in other tasks) and what they had at the store is gone, or its lease has ended. A
    /// [`Leadership`] that the caller holds is no longer valid, but keeps its entry until it is dropped or resigned:
    /// only the caller knows when the work under it has stopped. The session goes on; close it afterwards.
    pub async fn close(&self) {
        self.shared.closed.cancel();
        self.shared.idle().await;
    }

    fn env(&self) -> &Env {
        self.shared.env()
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
