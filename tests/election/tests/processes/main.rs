//! Candidates that are processes, on real servers: killed with -9, stopped for half of a lease, a little more than one and
//! three, cut off; the history of all of them is checked.

mod cast;
mod control;
mod scenes;
mod theatre;
