//! What the client library's errors mean to us.

use coord_api::ErrorKind;
use zookeeper_client::{Error as ZkError, MultiWriteError, SessionState};

/// Whether nobody can tell from this error if the request was executed. An idle wire comes as `Custom`.
pub(crate) fn is_ambiguous(error: &ZkError) -> bool {
    matches!(
        error,
        ZkError::ConnectionLoss
            | ZkError::Custom(_)
            | ZkError::Timeout
            | ZkError::UnexpectedError(_)
            | ZkError::UnmarshalError { .. }
            | ZkError::SessionMoved
            | ZkError::SessionExpired
            | ZkError::ClientClosed
            | ZkError::AuthFailed
    )
}

/// Whether the leader looked at what was asked, and refused it.
pub(crate) fn is_refusal(error: &ZkError) -> bool {
    !is_ambiguous(error) && !matches!(error, ZkError::Throttled | ZkError::NotReadOnly)
}

/// Whether it is one operation of a transaction that failed, and which: then nothing of it was executed.
pub(crate) fn failed_operation(error: &MultiWriteError) -> Option<(usize, &ZkError)> {
    match error {
        MultiWriteError::OperationFailed { index, source } => Some((*index, source)),
        MultiWriteError::RequestFailed { .. } => None,
    }
}

/// The kind of a failure that surely did not happen.
pub(crate) fn kind(error: &ZkError) -> ErrorKind {
    match error {
        ZkError::NoNode => ErrorKind::NotFound,
        ZkError::NotEmpty => ErrorKind::NotEmpty,
        ZkError::BadVersion => ErrorKind::VersionMismatch(None),
        ZkError::NoAuth => ErrorKind::PermissionDenied("the ACL of the node does not allow it".into()),
        ZkError::InvalidAcl => ErrorKind::PermissionDenied("the server does not accept our ACL".into()),
        ZkError::AuthFailed => ErrorKind::Unauthenticated(error.to_string()),
        ZkError::QuotaExceeded => ErrorKind::StoreFull("the quota of this path is used up".into()),
        ZkError::Throttled => ErrorKind::LimitReached("the server is overloaded and throttles requests".into()),
        ZkError::Unimplemented => ErrorKind::Refused("the server is older than 3.6".into()),
        ZkError::NotReadOnly => ErrorKind::Unavailable("the server is cut off from its ensemble".into()),
        other if is_ambiguous(other) => ErrorKind::Unavailable(other.to_string()),
        other => ErrorKind::Refused(other.to_string()),
    }
}

/// What to say about a connection in this state.
pub(crate) fn state_hint(state: SessionState) -> &'static str {
    match state {
        SessionState::SyncConnected => "connected, but no answer",
        SessionState::Disconnected => "the connection is lost and being made again",
        SessionState::AuthFailed => "the server does not accept the credentials",
        SessionState::ConnectedReadOnly => "the server is cut off from its ensemble",
        SessionState::Expired => "the session has expired",
        SessionState::Closed => "the session is closed",
    }
}
