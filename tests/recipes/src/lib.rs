//! What the session, the registry and the singleton owe on every driver, as scenarios over a [`World`]: a store that can
//! be stopped, paused and cut off. Each driver's tests bring their world and run the [`SCENARIOS`]. And [`check`], the
//! checker of what happened in an election.

mod bench;
mod history;
mod registry;
mod run;
mod session;
mod singleton;
mod spy;
mod world;

pub use bench::{RegistryCosts, registry_costs};
pub use history::{Interval, Line, What, check, intervals};
pub use run::run_all;
pub use spy::Spy;
pub use world::World;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// One thing that must hold, by the name of the behaviour.
pub struct Scenario {
    /// What it shows.
    pub name: &'static str,
    run: Run,
}

type Run = fn(Arc<dyn World>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

impl Scenario {
    /// Runs it in a world of its own; panics if it does not hold.
    pub async fn run(&self, world: Arc<dyn World>) {
        (self.run)(world).await;
    }
}

macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        /// All scenarios; each needs a world of its own.
        pub const SCENARIOS: &[Scenario] = &[
            $(Scenario { name: stringify!($name), run: |world| Box::pin($module::$name(world)) }),*
        ];
    };
}

scenarios![
    registry::a_registration_persists_over_many_ttls,
    registry::unregister_stops_cleanly,
    registry::registering_twice_is_one_entry,
    session::close_stops_the_loop,
    session::an_outage_heals_with_the_documented_delays,
    session::a_store_paused_past_the_ttl_is_a_loss_and_heals,
    session::a_black_hole_is_a_loss_on_time,
    session::a_revoked_lease_is_replaced,
    session::a_clock_jump_is_a_loss,
    session::closing_while_the_store_is_down_ends_by_its_deadline,
    registry::a_store_that_is_down_at_start_gets_everything_later,
    registry::an_outage_puts_back_the_desired_state,
    registry::a_deleted_entry_is_put_back,
    registry::an_overwritten_entry_is_put_right,
    registry::the_own_older_incarnation_is_replaced_at_once,
    registry::another_owners_live_entry_is_never_stolen,
    registry::entries_spread_over_further_leases_when_one_is_full,
    registry::a_view_follows_without_a_gap,
    singleton::the_next_leader_continues_where_the_last_one_left,
    singleton::a_write_with_an_older_token_is_refused,
    singleton::clearing_keeps_the_token,
    singleton::a_token_that_cannot_have_been_issued_is_refused,
    singleton::a_cancelled_step_never_writes_its_checkpoint,
    singleton::a_run_that_is_done_is_not_run_again,
];
