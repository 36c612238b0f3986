use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tower::{BoxError, Service};

tokio::task_local! {
    static SENT: Arc<AtomicBool>;
}

/// A channel that tells whether a request may have left: a body that was never polled was never sent.
#[derive(Clone)]
pub(crate) struct Marked(pub(crate) tonic::transport::Channel);

/// Whether a request made within [`SentMark::watch`] may have left.
#[derive(Clone, Default)]
pub(crate) struct SentMark(Arc<AtomicBool>);

struct MarkedBody {
    inner: Body,
    sent: Option<Arc<AtomicBool>>,
}

// === impl SentMark ===

impl SentMark {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn same(&self, other: &SentMark) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn watch<F: Future>(&self, request: F) -> impl Future<Output = F::Output> + use<F> {
        SENT.scope(self.0.clone(), request)
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
        let sent = SENT.try_with(Clone::clone).ok();
        let response = self.0.call(request.map(|inner| Body::new(MarkedBody { inner, sent })));
        Box::pin(async move { response.await.map_err(Into::into) })
    }
}

// === impl MarkedBody ===

impl http_body::Body for MarkedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(sent) = self.sent.take() {
            sent.store(true, Ordering::SeqCst);
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
