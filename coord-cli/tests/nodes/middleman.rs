use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Somebody who listens where a command expects a node: it records what it hears, and answers as it pleases.
pub(crate) struct Middleman {
    pub(crate) at: String,
    heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// What it answers to a request, head and body.
pub(crate) type Answer = Pin<Box<dyn Future<Output = String> + Send>>;

// === impl Middleman ===

impl Middleman {
    pub(crate) async fn start(answer: impl Fn(String) -> Answer + Send + 'static) -> Middleman {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let record = heard.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = whole_request(&mut stream).await;
                record.lock().unwrap().push(request.clone());
                let _ = stream.write_all(answer(request).await.as_bytes()).await;
            }
        });
        Middleman { at, heard, task }
    }

    /// All requests so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Middleman {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is sent to `at` as it is, and all that comes back.
pub(crate) async fn exchange(at: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![];
    // The other side may end the connection before it has read everything.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The answer that a node would give.
pub(crate) fn ok(body: &str, header: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{header}\r\n{body}")
}

/// The value of the header that carries proofs.
pub(crate) fn proof(message: &str) -> Option<&str> {
    let line = message
        .lines()
        .find(|line| line.to_lowercase().starts_with("coord-proof:"))?;
    Some(line.split_once(':')?.1.trim())
}

async fn whole_request(stream: &mut TcpStream) -> String {
    let mut bytes = vec![];
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return text;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}
