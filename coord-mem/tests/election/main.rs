//! The election recipes on the in-memory driver, under virtual time.

mod history;
mod late;
mod mutant;
mod mutants;
mod seeds;
mod sim;
