//! What goes wrong, when, and for whom: from a seed.

mod act;
mod expire;
mod fault;
mod quota;
mod schedule;

pub use act::Nemesis;
pub use fault::{Fault, Server, Way};
pub use schedule::{Step, schedule};
