use crate::Version;

/// The condition of an [`update`](crate::Coordinator::update) or [`delete`](crate::Coordinator::delete).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever state the entry is in; it must exist.
    Any,
    /// Exactly this state of exactly this incarnation.
    Version(Version),
}

impl From<Version> for Expect {
    fn from(version: Version) -> Expect {
        Expect::Version(version)
    }
}
