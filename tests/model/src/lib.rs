//! Both election recipes as a small model: three candidates, a store, a wire that delays and repeats requests and loses
//! answers, leases that end. `stateright` walks through every order of events within a budget of faults.
//!
//! What the model takes from the contract: a create carries a nonce and takes effect at most once; a definite answer
//! or an abandon settles the nonce; a lease ends at the store only after its holder's own deadline has passed; an
//! answer may be old when its reader acts on it. Everything else is the recipe's part, and is what is checked.

mod model;
mod state;

pub use model::{Action, Budget, ElectionModel, Mutant, Recipe};
pub use state::{Candidate, Entry, Phase, Request, State, View};
