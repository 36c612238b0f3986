//! The election recipes on the in-memory driver, under virtual time.

mod cancelling;
mod closing;
mod granting;
mod history;
mod late;
mod losing;
mod mutant;
mod mutants;
mod observing;
mod releasing;
mod seeds;
mod sim;
mod stage;
