use std::fmt;
use std::time::Duration;

use crate::{Entry, InvalidKey, Key, LeaseId, Version};

/// The result of a call on a [`Coordinator`](crate::Coordinator).
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed: which operation on what, whether it may have happened all the same, and what to do.
pub struct Error(Box<Inner>);

struct Inner {
    operation: Operation,
    key: Option<Key>,
    class: Class,
    kind: ErrorKind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Whether a call that failed may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It did not happen, and the [kind](Error::kind) says why. Sending the same again ends the same way until
    /// something changes.
    Definite,
    /// It did not happen because it never left, or it was a read: safe to try again.
    NotSent,
    /// It may have happened, or may still happen. Only writes end like this.
    Unknown,
}

/// What was asked of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the method of the same name")]
pub enum Operation {
    Open,
    Grant,
    Renew,
    Revoke,
    Create,
    Abandon,
    Get,
    GetLatest,
    Children,
    Update,
    Delete,
    Standing,
    Watch,
    Close,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is taken; by whom.
    AlreadyExists(Box<Entry>),
    /// There is no such entry.
    NotFound,
    /// The entry is in another state than expected, or another incarnation; its version now, where the store told.
    VersionMismatch(Option<Version>),
    /// The key has children.
    NotEmpty,
    /// This ancestor is ephemeral, and ephemeral entries have no children.
    EphemeralParent(Key),
    /// The lease has ended.
    LeaseLost(LeaseId),
    /// The lease cannot carry more entries: use another one.
    LeaseFull(LeaseId),
    /// The lease was not granted by this coordinator.
    ForeignLease(LeaseId),
    /// The create was abandoned and can no longer take effect.
    Abandoned,
    /// The key breaks a rule.
    InvalidKey(InvalidKey),
    /// The value is over the limit.
    ValueTooLarge {
        /// Its size in bytes.
        size: usize,
        /// The largest allowed.
        limit: usize,
    },
    /// The ttl is zero, or over the limit.
    InvalidTtl {
        /// What was asked for.
        ttl: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The configuration cannot work.
    InvalidConfig(String),
    /// The coordinator was closed.
    Closed,
    /// The store does not accept who we are.
    Unauthenticated(String),
    /// The store knows who we are and does not allow this.
    PermissionDenied(String),
    /// The store has no room left; an operator has to make some.
    StoreFull(String),
    /// A limit of the store on connections or requests was hit.
    LimitReached(String),
    /// The store refused for another reason.
    Refused(String),
    /// The store cannot be reached, or has no leader.
    Unavailable(String),
    /// No answer came in time.
    DeadlineExceeded(Duration),
}

// === impl Error ===

impl Error {
    /// A failure that surely did not happen.
    pub fn definite(operation: Operation, key: Option<&Key>, kind: ErrorKind) -> Error {
        Error::new(operation, key, Class::Definite, kind)
    }

    /// A failure before anything left.
    pub fn not_sent(operation: Operation, key: Option<&Key>, kind: ErrorKind) -> Error {
        Error::new(operation, key, Class::NotSent, kind)
    }

    /// A failure of something that may have happened; of class *not sent* when it was a read, which changes nothing.
    pub fn unknown(operation: Operation, key: Option<&Key>, kind: ErrorKind) -> Error {
        let class = if operation.is_read() {
            Class::NotSent
        } else {
            Class::Unknown
        };
        Error::new(operation, key, class, kind)
    }

    fn new(operation: Operation, key: Option<&Key>, class: Class, kind: ErrorKind) -> Error {
        Error(Box::new(Inner {
            operation,
            key: key.cloned(),
            class,
            kind,
            source: None,
        }))
    }

    /// The coordinator was closed.
    pub fn closed(operation: Operation, key: Option<&Key>) -> Error {
        Error::definite(operation, key, ErrorKind::Closed)
    }

    /// Adds what lies beneath. It must hold no secret.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// What was asked.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// Which key it was asked of, if one.
    pub fn key(&self) -> Option<&Key> {
        self.0.key.as_ref()
    }

    /// Whether it may have happened.
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether it surely did not happen.
    pub fn is_definite(&self) -> bool {
        self.0.class == Class::Definite
    }

    /// Whether it may have happened.
    pub fn is_unknown(&self) -> bool {
        self.0.class == Class::Unknown
    }

    /// Whether the coordinator was closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Closed)
    }

    /// Whether the lease is gone.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self.0.kind, ErrorKind::LeaseLost(_))
    }

    /// Whether there was no such entry.
    pub fn is_not_found(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NotFound)
    }

    /// Whether the store could not be reached or did not answer: later, the same call may work.
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable(_) | ErrorKind::DeadlineExceeded(_))
    }

    /// The entry that holds the key of a create, if that is why it failed.
    pub fn holder(&self) -> Option<&Entry> {
        match &self.0.kind {
            ErrorKind::AlreadyExists(entry) => Some(entry),
            _ => None,
        }
    }

    /// The same error with each key that it names passed through `map`.
    pub(crate) fn map_keys(mut self, map: impl Fn(&Key) -> Key) -> Error {
        self.0.key = self.0.key.as_ref().map(&map);
        match &mut self.0.kind {
            ErrorKind::AlreadyExists(entry) => entry.key = map(&entry.key),
            ErrorKind::EphemeralParent(key) => *key = map(key),
            _ => {}
        }
        self
    }
}

impl Operation {
    /// Whether it changes nothing at the store.
    pub fn is_read(self) -> bool {
        use Operation::*;
        matches!(self, Open | Get | GetLatest | Children | Standing | Watch)
    }
}

impl ErrorKind {
    /// What the reader of the message can do about it; empty where the message itself says it.
    fn advice(&self) -> &'static str {
        match self {
            ErrorKind::VersionMismatch(_) => "; read it again and decide anew",
            ErrorKind::NotEmpty => "; delete the children first, or use the recursive form",
            ErrorKind::LeaseLost(_) => "; grant a new lease and create its entries again",
            ErrorKind::LeaseFull(_) => "; put further entries under another lease",
            ErrorKind::ForeignLease(_) => "; use a lease that this coordinator granted",
            ErrorKind::Closed => "; open a new coordinator",
            ErrorKind::Unauthenticated(_) => "; check user, password and certificates",
            ErrorKind::PermissionDenied(_) => "; have the operator grant it",
            ErrorKind::StoreFull(_) => "; an operator has to free space and clear the alarm",
            _ => "",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            operation,
            key,
            class,
            kind,
            ..
        } = &*self.0;
        write!(f, "{operation}")?;
        if let Some(key) = key {
            write!(f, " {key}")?;
        }
        write!(f, ": {kind}")?;
        match class {
            Class::Definite => {}
            Class::NotSent if operation.is_read() => f.write_str("; it may be tried again")?,
            Class::NotSent => f.write_str("; it was not sent and may be tried again")?,
            Class::Unknown if *operation == Operation::Create => {
                f.write_str("; it may have happened: create again with the same nonce, or abandon it")?;
            }
            Class::Unknown => f.write_str("; it may have happened: read before trying again")?,
        }
        f.write_str(kind.advice())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {self}", self.0.class)?;
        if let Some(source) = &self.0.source {
            write!(f, ", because {source}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Grant => "grant",
            Operation::Renew => "renew",
            Operation::Revoke => "revoke",
            Operation::Create => "create",
            Operation::Abandon => "abandon",
            Operation::Get => "get",
            Operation::GetLatest => "get latest",
            Operation::Children => "children of",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::Standing => "standing of",
            Operation::Watch => "watch",
            Operation::Close => "close",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::AlreadyExists(holder) => {
                write!(f, "{} exists already, created {}", holder.key, holder.created)?;
                match holder.lease {
                    Some(lease) => write!(f, " under lease {lease}"),
                    None => f.write_str(", persistent"),
                }
            }
            ErrorKind::NotFound => f.write_str("there is no such entry"),
            ErrorKind::VersionMismatch(Some(now)) => write!(f, "another version is there: {now}"),
            ErrorKind::VersionMismatch(None) => f.write_str("another version is there"),
            ErrorKind::NotEmpty => f.write_str("it has children"),
            ErrorKind::EphemeralParent(parent) => write!(f, "{parent} is ephemeral and cannot have children"),
            ErrorKind::LeaseLost(lease) => write!(f, "lease {lease} has ended"),
            ErrorKind::LeaseFull(lease) => write!(f, "lease {lease} cannot carry more entries"),
            ErrorKind::ForeignLease(lease) => write!(f, "lease {lease} is not one of this coordinator"),
            ErrorKind::Abandoned => f.write_str("this create was abandoned"),
            ErrorKind::InvalidKey(invalid) => invalid.fmt(f),
            ErrorKind::ValueTooLarge { size, limit } => {
                write!(f, "the value has {size} bytes, the limit is {limit}")
            }
            ErrorKind::InvalidTtl { ttl, max } => write!(f, "a ttl of {ttl:?} is not above zero and at most {max:?}"),
            ErrorKind::InvalidConfig(what) => f.write_str(what),
            ErrorKind::Closed => f.write_str("the coordinator is closed"),
            ErrorKind::Unauthenticated(what) => write!(f, "the store does not accept the credentials ({what})"),
            ErrorKind::PermissionDenied(what) => write!(f, "the store denies permission ({what})"),
            ErrorKind::StoreFull(what) => write!(f, "the store is full ({what})"),
            ErrorKind::LimitReached(what) => write!(f, "a limit of the store was reached ({what})"),
            ErrorKind::Refused(what) => write!(f, "the store refused ({what})"),
            ErrorKind::Unavailable(what) => write!(f, "the store is unavailable ({what})"),
            ErrorKind::DeadlineExceeded(after) => write!(f, "no answer within {after:?}"),
        }
    }
}
