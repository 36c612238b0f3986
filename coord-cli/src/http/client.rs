//! One request to a node.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::PROOF;
use super::control::proof;
use crate::exit::Exit;

const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer: some ten thousand members.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// What a node says at `path`.
pub(crate) async fn get(at: &str, path: &str) -> Result<Value, Exit> {
    let request = Request::get(path);
    ask(at, request, Vec::new()).await
}

/// Tells a node to do something, with proof that one knows the secret.
pub(crate) async fn post(at: &str, path: &str, body: Vec<u8>, secret: Option<&[u8]>) -> Result<Value, Exit> {
    let challenge = get(at, "/control/challenge").await?;
    let challenge = challenge["challenge"].as_str().unwrap_or_default();
    let request = Request::post(path).header(PROOF, proof(secret, challenge, path, &body));
    ask(at, request, body).await
}

async fn ask(at: &str, request: hyper::http::request::Builder, body: Vec<u8>) -> Result<Value, Exit> {
    let asked = tokio::time::timeout(PATIENCE, exchange(at, request, body)).await;
    let failed = |why: &dyn std::fmt::Display| Exit::unavailable(format!("the node at {at} cannot be reached: {why}"));
    let (status, answer) = match asked {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(failed(&error)),
        Err(_) => return Err(failed(&format!("no answer within {PATIENCE:?}"))),
    };
    let value: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
    if status.is_success() {
        return Ok(value);
    }
    let message = value["message"].as_str().unwrap_or("it did not say why");
    Err(Exit::failed(format!("the node at {at} refused ({status}): {message}")))
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    at: &str,
    request: hyper::http::request::Builder,
    body: Vec<u8>,
) -> Result<(hyper::StatusCode, Bytes), Failure> {
    let stream = TcpStream::connect(at).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = request.header(HOST, at).body(Full::new(Bytes::from(body)))?;
    let talk = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?;
        Ok::<_, Failure>((status, body.to_bytes()))
    };
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        answer = &mut talk => answer,
        // The connection may end with the answer.
        _ = connection => talk.await,
    }
}
