use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, LeaseId};

/// A store and the hand on its switches.
#[async_trait]
pub trait World: Send + Sync {
    /// One more client.
    async fn open(&self) -> Arc<dyn Coordinator>;

    /// One more client, whose clock [can be moved](coord_api::Env::jump).
    async fn open_movable(&self) -> Arc<dyn Coordinator>;

    /// The ttl to use: long enough that what is late is late on purpose.
    fn ttl(&self) -> Duration;

    /// How late an observation may come without being wrong.
    fn tolerance(&self) -> Duration;

    /// Kills the server.
    async fn stop(&self);

    /// Starts it again, with its data.
    async fn start(&self);

    /// Stops the server as SIGSTOP does: connections stay, answers do not come.
    async fn pause(&self);

    /// Lets it run on.
    async fn resume(&self);

    /// Everything between the clients and the server vanishes, and nobody is told.
    async fn swallow(&self);

    /// The way is clear again.
    async fn heal(&self);

    /// Ends a lease by an operator's hand.
    async fn revoke(&self, lease: LeaseId);
}
