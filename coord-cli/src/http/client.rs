//! One request to a node.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::PROOF;
use super::proof::{Asked, Proof};
use crate::exit::Exit;

const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer: some ten thousand members.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// What came back.
struct Answer {
    status: StatusCode,
    proof: Option<String>,
    body: Bytes,
}

/// What a node says at `path`.
pub(crate) async fn get(at: &str, path: &str, secret: Option<&[u8]>) -> Result<Value, Exit> {
    ask(at, "GET", path, Vec::new(), secret).await
}

/// Tells a node to do something.
pub(crate) async fn post(at: &str, path: &str, body: Vec<u8>, secret: Option<&[u8]>) -> Result<Value, Exit> {
    ask(at, "POST", path, body, secret).await
}

/// Asks with proof that one knows the secret, and believes nobody who does not know it, too.
async fn ask(at: &str, method: &str, path: &str, body: Vec<u8>, secret: Option<&[u8]>) -> Result<Value, Exit> {
    let challenge = exchange(at, "GET", "/control/challenge", None, Vec::new()).await?;
    let challenge = json(at, &challenge)?;
    let Some(challenge) = challenge["challenge"].as_str().filter(|text| is_plain(text)) else {
        return Err(Exit::failed(format!("whoever answers at {at} is no coord node")));
    };
    let asked = Asked {
        method,
        path,
        body: &body,
    };
    let proof = Proof::new(secret, challenge, asked);
    let answer = exchange(at, method, path, Some(proof.header()), body.clone()).await?;
    if let Some(secret) = secret {
        let header = answer.proof.as_deref().unwrap_or_default();
        if !proof.is_answered_by(header, secret, answer.status.as_u16(), &answer.body) {
            return Err(unproven(at, method, &answer));
        }
    }
    json(at, &answer)
}

/// It may be a node with another secret, or somebody who only pretends to be one.
fn unproven(at: &str, method: &str, answer: &Answer) -> Exit {
    let status = answer.status;
    if status.is_success() {
        let happened = match method {
            "GET" => "",
            _ => "; if it passed the order on to a node, it may have been carried out: look with `coord members`",
        };
        return Exit::failed(format!(
            "whoever answers at {at} does not prove that it knows the secret: nothing it says is believed{happened}"
        ));
    }
    let message = message(&answer.body);
    Exit::failed(format!(
        "refused ({status}) at {at}, without proof that it knows the secret; it says: {message}"
    ))
}

fn json(at: &str, answer: &Answer) -> Result<Value, Exit> {
    let status = answer.status;
    if status.is_success() {
        return Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null));
    }
    let message = message(&answer.body);
    Err(Exit::failed(format!("the node at {at} refused ({status}): {message}")))
}

/// Why it refused, no longer than a person reads.
fn message(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let message = value["message"].as_str().unwrap_or("it did not say why");
    message.chars().take(500).collect()
}

/// Whether it can be part of a header.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

async fn exchange(at: &str, method: &str, path: &str, proof: Option<String>, body: Vec<u8>) -> Result<Answer, Exit> {
    let told = tokio::time::timeout(PATIENCE, talk(at, method, path, proof, body)).await;
    let failed = |why: &dyn std::fmt::Display| {
        let happened = match method {
            "GET" => "",
            _ => "; the order may have been carried out: look with `coord members`",
        };
        Exit::unavailable(format!("the node at {at} cannot be reached: {why}{happened}"))
    };
    match told {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(&error)),
        Err(_) => Err(failed(&format!("no answer within {PATIENCE:?}"))),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn talk(at: &str, method: &str, path: &str, proof: Option<String>, body: Vec<u8>) -> Result<Answer, Failure> {
    let stream = TcpStream::connect(at).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::builder().method(method).uri(path).header(HOST, at);
    if let Some(proof) = proof {
        request = request.header(PROOF, proof);
    }
    let request = request.body(Full::new(Bytes::from(body)))?;
    let talk = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let proof = response.headers().get(PROOF).and_then(|proof| proof.to_str().ok());
        let proof = proof.map(ToOwned::to_owned);
        let body = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await?
            .to_bytes();
        Ok::<_, Failure>(Answer { status, proof, body })
    };
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        answer = &mut talk => answer,
        // The connection may end with the answer.
        _ = connection => talk.await,
    }
}
