use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_api::{Env, Error, ErrorKind, Instant, Key, Operation, Result};
use tokio_util::sync::CancellationToken;
use zookeeper_client::Error as ZkError;

use crate::faults;

/// One call on the coordinator: until when it has to end, and whether something of it may have happened.
#[derive(Debug)]
pub(crate) struct Call {
    env: Env,
    operation: Operation,
    key: Option<Key>,
    limit: Duration,
    deadline: Instant,
    /// A write is on its way and its outcome not known.
    unsettled: AtomicBool,
}

impl Call {
    pub(crate) fn new(env: &Env, operation: Operation, key: Option<&Key>, limit: Duration) -> Call {
        Call {
            env: env.clone(),
            operation,
            key: key.cloned(),
            limit,
            deadline: env.now() + limit,
            unsettled: AtomicBool::new(false),
        }
    }

    /// Runs the call until its deadline, or until the coordinator is closed.
    pub(crate) async fn run<T>(
        &self,
        closed: &CancellationToken,
        hint: impl Fn() -> Option<ErrorKind>,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if closed.is_cancelled() {
            return Err(self.definite(ErrorKind::Closed));
        }
        tokio::select! {
            biased;
            result = self.env.timeout_at(self.deadline, future) => match result {
                Some(result) => result,
                None if self.is_unsettled() => Err(self.broken(ErrorKind::DeadlineExceeded(self.limit))),
                None => Err(self.broken(hint().unwrap_or(ErrorKind::DeadlineExceeded(self.limit)))),
            },
            () = closed.cancelled() => Err(if self.is_unsettled() {
                self.broken(ErrorKind::Closed)
            } else {
                self.definite(ErrorKind::Closed)
            }),
        }
    }

    /// A write leaves now.
    pub(crate) fn sent(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
    }

    /// The outcome of what left is known.
    pub(crate) fn settled(&self) {
        self.unsettled.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::SeqCst)
    }

    pub(crate) fn definite(&self, kind: ErrorKind) -> Error {
        Error::definite(self.operation, self.key.as_ref(), kind)
    }

    /// Of class unknown if a write is on its way, not sent otherwise.
    pub(crate) fn broken(&self, kind: ErrorKind) -> Error {
        if self.is_unsettled() {
            Error::unknown(self.operation, self.key.as_ref(), kind)
        } else {
            Error::not_sent(self.operation, self.key.as_ref(), kind)
        }
    }

    /// What the server refused. While a write is in doubt this can only have been a look at what became of it.
    pub(crate) fn refused(&self, error: &ZkError) -> Error {
        let kind = faults::kind(error);
        match kind {
            ErrorKind::Unavailable(_) => self.broken(kind),
            _ if self.is_unsettled() => self.broken(kind),
            kind => self.definite(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_is_refused_leaves_a_write_in_doubt_unknown() {
        let call = Call::new(&Env::system(), Operation::Create, None, Duration::from_secs(1));
        assert!(call.refused(&ZkError::Throttled).is_definite());
        call.sent();
        assert!(call.refused(&ZkError::Throttled).is_unknown());
        call.settled();
        assert!(call.refused(&ZkError::NoAuth).is_definite());
    }
}
