//! What happens to the bytes of one direction.

use std::time::Duration;

/// One way through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From clients to the server: requests.
    ToServer,
    /// From the server to clients: answers.
    ToClient,
}

/// What happens to the bytes of one direction, and to its end of stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flow {
    /// Forwarded at once.
    #[default]
    Pass,
    /// Forwarded this long after they came; bytes that follow closely are not delayed by each other.
    Delay(Duration),
    /// Kept, and forwarded in order when the flow changes to one that forwards. A full buffer pushes back on the sender.
    Hold,
    /// Swallowed. When the flow changes, a connection that lost something is reset: its stream has a gap.
    Drop,
    /// Forwarded a few at a time.
    Trickle {
        /// How many bytes at a time, at least one.
        bytes: usize,
        /// The pause after them.
        every: Duration,
    },
}
