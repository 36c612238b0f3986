use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tower::{BoxError, Service};

tokio::task_local! {
    static MARK: SentMark;
}

const HERE: u8 = 0;
const LEFT: u8 = 1;
const RECALLED: u8 = 2;

/// A channel that tells whether a request may have left: a body that was never polled was never sent.
#[derive(Clone)]
pub(crate) struct Marked(pub(crate) tonic::transport::Channel);

/// Whether a request made within [`SentMark::watch`] may have left.
#[derive(Clone, Default)]
pub(crate) struct SentMark(Arc<AtomicU8>);

struct MarkedBody {
    inner: Body,
    mark: Option<SentMark>,
}

// === impl SentMark ===

impl SentMark {
    /// Whether it has not left: then it never will. To look alone is not enough, the connection's own task may be just
    /// about to send it.
    pub(crate) fn recall(&self) -> bool {
        self.settle(RECALLED)
    }

    /// Whether it may leave.
    fn leave(&self) -> bool {
        self.settle(LEFT)
    }

    fn settle(&self, how: u8) -> bool {
        match self.0.compare_exchange(HERE, how, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(already) => already == how,
        }
    }

    pub(crate) fn same(&self, other: &SentMark) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn watch<F: Future>(&self, request: F) -> impl Future<Output = F::Output> + use<F> {
        MARK.scope(self.clone(), request)
    }
}

// === impl Marked ===

impl Service<http::Request<Body>> for Marked {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mark = MARK.try_with(Clone::clone).ok();
        let response = self.0.call(request.map(|inner| Body::new(MarkedBody { inner, mark })));
        Box::pin(async move { response.await.map_err(Into::into) })
    }
}

// === impl MarkedBody ===

impl http_body::Body for MarkedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.mark.as_ref().is_some_and(|mark| !mark.leave()) {
            return Poll::Ready(Some(Err(Status::cancelled("nobody waits for it any more"))));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_recalled_does_not_leave_and_what_left_is_not_recalled() {
        let body = |mark: &SentMark| {
            let (inner, mark) = (Body::empty(), Some(mark.clone()));
            MarkedBody { inner, mark }
        };
        let polled = async |mut body: MarkedBody| {
            std::future::poll_fn(|context| http_body::Body::poll_frame(Pin::new(&mut body), context)).await
        };
        let recalled = SentMark::default();
        assert!(recalled.recall() && recalled.recall());
        assert!(
            matches!(polled(body(&recalled)).await, Some(Err(_))),
            "nothing of it leaves"
        );
        let left = SentMark::default();
        assert!(!matches!(polled(body(&left)).await, Some(Err(_))));
        assert!(!left.recall(), "too late");
    }
}
