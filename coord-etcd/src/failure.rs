use std::time::Duration;

use coord_api::{Class, Error, ErrorKind, Key, Operation};
use tonic::{Code, Status};

/// How one request, or a whole call made of several, failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) kind: ErrorKind,
    /// What etcd said, where that is more than the kind tells.
    pub(crate) reason: Reason,
}

/// How the client tells of a keep-alive for a lease that there is not.
pub(crate) const LEASE_NOT_FOUND: &str = "lease not found";

/// What the driver itself reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A put named a lease that has ended, or a revoke or keep-alive did.
    LeaseNotFound,
    /// A grant chose an id that is taken.
    LeaseExists,
    /// A read named a revision that is compacted.
    Compacted,
    /// The token is too old, or a newer one is wanted.
    Token,
    /// The quota is reached. etcd says so also of the write that crosses it, which it makes all the same.
    Full,
    Other,
}

impl Failure {
    pub(crate) fn new(class: Class, kind: ErrorKind) -> Failure {
        Failure {
            class,
            kind,
            reason: Reason::Other,
        }
    }

    pub(crate) fn unavailable(class: Class, what: impl Into<String>) -> Failure {
        Failure::new(class, ErrorKind::Unavailable(what.into()))
    }

    /// No answer in time; `sent` tells whether anything left.
    pub(crate) fn deadline(sent: bool, limit: Duration) -> Failure {
        let class = if sent { Class::Unknown } else { Class::NotSent };
        Failure::new(class, ErrorKind::DeadlineExceeded(limit))
    }

    /// An earlier attempt of the same call tells more than that the last one was too late.
    pub(crate) fn after(self, earlier: Option<&Failure>) -> Failure {
        let kind = match (self.kind, earlier.map(|earlier| &earlier.kind)) {
            (ErrorKind::DeadlineExceeded(limit), Some(ErrorKind::Unavailable(what))) => {
                ErrorKind::Unavailable(format!("no answer within {limit:?}, and before that: {what}"))
            }
            (kind, _) => kind,
        };
        Failure { kind, ..self }
    }

    /// What `error` means for a request that left (`sent`) or did not.
    pub(crate) fn of(error: &etcd_client::Error, sent: bool) -> Failure {
        match error {
            etcd_client::Error::GRpcStatus(status) => of_status(status, sent),
            // The client says the same kind of error when its stream is dead.
            etcd_client::Error::LeaseKeepAliveError(what) if what == LEASE_NOT_FOUND => Failure {
                class: Class::Definite,
                kind: ErrorKind::Refused(LEASE_NOT_FOUND.into()),
                reason: Reason::LeaseNotFound,
            },
            other => Failure::unavailable(unsettled(sent), other.to_string()),
        }
    }

    /// Whether another attempt, or another endpoint, may do better.
    pub(crate) fn is_transient(&self) -> bool {
        self.class != Class::Definite
    }

    /// The only copy of a write was refused for want of room: it may be the one that crossed the quota, so only a look
    /// tells whether it happened.
    pub(crate) fn may_have_crossed_the_quota(&self) -> bool {
        self.reason == Reason::Full && self.class == Class::Definite
    }

    /// Nobody can tell whether it happened.
    pub(crate) fn unknown(self) -> Failure {
        Failure {
            class: Class::Unknown,
            ..self
        }
    }

    /// The error that the caller sees.
    pub(crate) fn into_error(self, operation: Operation, key: Option<&Key>) -> Error {
        match self.class {
            Class::Definite => Error::definite(operation, key, self.kind),
            Class::NotSent => Error::not_sent(operation, key, self.kind),
            Class::Unknown => Error::unknown(operation, key, self.kind),
        }
    }
}

fn unsettled(sent: bool) -> Class {
    if sent { Class::Unknown } else { Class::NotSent }
}

fn of_status(status: &Status, sent: bool) -> Failure {
    let text = status.message();
    let said = text.strip_prefix("etcdserver: ").unwrap_or(text).to_owned();
    let definite = |kind: ErrorKind| Failure::new(Class::Definite, kind);
    let has = |part: &str| text.contains(part);
    // Made here and not by the server: the connection broke, whatever code tonic finds for the way in which it did.
    if std::error::Error::source(status).is_some() {
        return Failure::unavailable(unsettled(sent), connection_trouble(status, said));
    }
    match status.code() {
        // Refused before it was executed.
        Code::Unavailable if has("no leader") || has("not supported for learner") => {
            Failure::unavailable(Class::NotSent, said)
        }
        _ if has("too many requests") => Failure::new(Class::NotSent, ErrorKind::LimitReached(said)),
        _ if has("requested lease not found") => Failure {
            reason: Reason::LeaseNotFound,
            ..definite(ErrorKind::Refused(said))
        },
        _ if has("lease already exists") => Failure {
            reason: Reason::LeaseExists,
            ..definite(ErrorKind::Refused(said))
        },
        _ if has("has been compacted") => Failure {
            reason: Reason::Compacted,
            ..definite(ErrorKind::Refused(said))
        },
        // A member that lags behind the one that answered before: a read, which another member can answer.
        _ if has("future revision") => Failure::unavailable(Class::NotSent, said),
        // "User name is empty": no token was sent, because the store asked for none when we logged in.
        _ if has("invalid auth token")
            || has("revision of auth store is old")
            || has("revision in header is old")
            || has("user name is empty") =>
        {
            Failure {
                reason: Reason::Token,
                ..definite(ErrorKind::Unauthenticated(said))
            }
        }
        Code::Unauthenticated => definite(ErrorKind::Unauthenticated(said)),
        _ if has("authentication failed") || has("user name not found") => definite(ErrorKind::Unauthenticated(said)),
        Code::PermissionDenied => definite(ErrorKind::PermissionDenied(said)),
        Code::ResourceExhausted if has("space exceeded") => Failure {
            reason: Reason::Full,
            ..definite(ErrorKind::StoreFull(said))
        },
        Code::ResourceExhausted => definite(ErrorKind::LimitReached(said)),
        _ if has("request is too large") || has("too many operations") => definite(ErrorKind::LimitReached(said)),
        // The server is another one than we took it for (not etcd, or too old): nothing was done.
        Code::NotFound
        | Code::OutOfRange
        | Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::AlreadyExists
        | Code::Unimplemented
        | Code::DataLoss => definite(ErrorKind::Refused(said)),
        _ => Failure::unavailable(unsettled(sent), connection_trouble(status, said)),
    }
}

/// tonic's own words ("transport error") say little; what lies beneath says more.
fn connection_trouble(status: &Status, said: String) -> String {
    let mut told = if said.is_empty() {
        format!("{:?}", status.code())
    } else {
        said
    };
    let mut source = std::error::Error::source(status);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        source = cause.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_get_the_class_that_was_measured() {
        let class = |code, text: &str, sent| of_status(&Status::new(code, text), sent).class;
        assert_eq!(class(Code::Unavailable, "etcdserver: no leader", true), Class::NotSent);
        assert_eq!(
            class(Code::Unavailable, "etcdserver: request timed out", true),
            Class::Unknown
        );
        assert_eq!(class(Code::Unavailable, "tcp connect error", false), Class::NotSent);
        assert_eq!(class(Code::Unknown, "h2 protocol error", true), Class::Unknown);
        assert_eq!(class(Code::Cancelled, "operation was canceled", true), Class::Unknown);
        let lagging = "etcdserver: mvcc: required revision is a future revision";
        assert_eq!(class(Code::OutOfRange, lagging, true), Class::NotSent);
        assert_eq!(
            class(
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                true
            ),
            Class::Definite
        );
    }

    #[test]
    fn a_connection_that_breaks_settles_nothing() {
        for code in [Code::ResourceExhausted, Code::PermissionDenied, Code::Internal] {
            // So tonic tells of GOAWAY and RST_STREAM with ENHANCE_YOUR_CALM, INADEQUATE_SECURITY and others.
            let mut status = Status::new(code, "h2 protocol error: http2 error");
            status.set_source(std::sync::Arc::new(std::io::Error::other("stream closed because of …")));
            let class = |sent| Failure::of(&etcd_client::Error::GRpcStatus(status.clone()), sent).class;
            assert_eq!(
                (class(true), class(false)),
                (Class::Unknown, Class::NotSent),
                "{code:?}"
            );
        }
        let dead = etcd_client::Error::LeaseKeepAliveError("channel closed".into());
        assert_eq!(Failure::of(&dead, true).reason, Reason::Other);
        assert_eq!(Failure::of(&dead, true).class, Class::Unknown);
        let gone = etcd_client::Error::LeaseKeepAliveError(LEASE_NOT_FOUND.into());
        assert_eq!(Failure::of(&gone, true).reason, Reason::LeaseNotFound);
    }
}
