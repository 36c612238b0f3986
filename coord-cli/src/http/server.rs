use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::pages::{Answer, error};
use super::proof::Asked;
use super::{MAX_BODY, PROOF, Pages};

/// How many connections are served at once; the next one waits.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection may take to ask, and to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let pages = pages.clone();
                    connections.spawn(async move {
                        let answer = service_fn(|request| answer(request, pages.clone()));
                        let serving = http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(PATIENCE)
                            .keep_alive(false)
                            .serve_connection(TokioIo::new(stream), answer);
                        // Whoever asked has gone, or asked no sensible thing.
                        let _ = tokio::time::timeout(PATIENCE * 2, serving).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept HTTP connections");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn answer(request: Request<Incoming>, pages: Arc<Pages>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await;
    let answer = match body {
        Ok(Ok(body)) => {
            let proof = head.headers.get(PROOF).and_then(|proof| proof.to_str().ok());
            let body = body.to_bytes();
            let asked = Asked {
                method: head.method.as_str(),
                path: head.uri.path(),
                body: &body,
            };
            pages.answer(asked, proof).await
        }
        _ => error(StatusCode::BAD_REQUEST, "the body is too long, or does not come"),
    };
    Ok(response(answer))
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content));
    if let Some(proof) = answer.proof.and_then(|proof| HeaderValue::try_from(proof).ok()) {
        headers.insert(PROOF, proof);
    }
    response
}
