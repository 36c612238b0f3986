//! The node's little web server, and what `coord members`, `leave` and `down` ask it.

pub(crate) mod client;
mod control;
mod pages;
mod proof;
mod server;

pub(crate) use control::Control;
pub(crate) use pages::{Pages, status};
pub(crate) use server::serve;

/// The header, of requests and of answers, that proves that one knows the secret: see [`proof`].
const PROOF: &str = "coord-proof";
/// The longest request body.
const MAX_BODY: usize = 4096;
