//! One ordered channel per peer: TCP, one direction per connection. Who wants to talk connects; the listener greets
//! with a nonce; then frames follow.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::{FrameError, FrameReader, FrameWriter, MAGIC, MAX_FRAME_BYTES};
use super::secret::Secret;
use super::stats::Counters;
use crate::{Address, Envelope};

/// How long connecting, greeting, or writing or reading the rest of one frame may take.
const IO_DEADLINE: Duration = Duration::from_secs(3);
/// How long a channel without messages stays open.
const IDLE: Duration = Duration::from_secs(30);
/// A reader waits longer than a writer, so that the writer is the one who hangs up.
const READER_IDLE: Duration = Duration::from_secs(60);

async fn within<T>(limit: Duration, what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, what)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Writes what comes out of `queue` to the peer until it is idle, broken, or no longer wanted. What is in the queue
/// when the connection breaks is lost and counted; gossip repeats itself.
pub(super) async fn write_channel(
    peer: Address,
    secret: Option<Secret>,
    mut queue: mpsc::Receiver<Envelope>,
    counters: Counters,
) {
    if let Err(error) = pump(&peer, secret, &mut queue, &counters).await {
        tracing::debug!(%peer, %error, "channel closed");
    }
    queue.close();
    while queue.recv().await.is_some() {
        counters.undelivered();
    }
}

async fn pump(
    peer: &Address,
    secret: Option<Secret>,
    queue: &mut mpsc::Receiver<Envelope>,
    counters: &Counters,
) -> io::Result<()> {
    let host = peer.host().trim_start_matches('[').trim_end_matches(']');
    let mut stream = within(IO_DEADLINE, TcpStream::connect((host, peer.port()))).await?;
    stream.set_nodelay(true)?;
    let mut greeting = [0; MAGIC.len() + 16];
    within(IO_DEADLINE, stream.read_exact(&mut greeting)).await?;
    let (magic, nonce) = greeting.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a cluster node of this version",
        ));
    }
    let mut writer = FrameWriter::new(std::array::from_fn(|i| nonce[i]), secret);
    let mut unexpected = [0; 1];
    loop {
        let envelope = tokio::select! {
            biased;
            // The peer never writes after its greeting: this is how its end is noticed before a message is lost in it.
            _ = stream.read(&mut unexpected) => return Err(io::ErrorKind::ConnectionAborted.into()),
            envelope = timeout(IDLE, queue.recv()) => match envelope {
                Ok(Some(envelope)) => envelope,
                Ok(None) | Err(_) => return Ok(()),
            },
        };
        match writer.encode(&envelope) {
            Ok(bytes) => within(IO_DEADLINE, stream.write_all(&bytes)).await?,
            Err(error) => {
                counters.refused(error);
                continue;
            }
        }
        counters.sent();
    }
}

/// Reads frames from a connection until it ends or breaks the rules.
pub(super) async fn read_channel(
    mut stream: TcpStream,
    me: Address,
    secret: Option<Secret>,
    inbox: mpsc::Sender<Envelope>,
    counters: Counters,
) {
    let nonce: [u8; 16] = rand::random();
    let mut greeting = MAGIC.to_vec();
    greeting.extend(nonce);
    if within(IO_DEADLINE, stream.write_all(&greeting)).await.is_err() {
        return;
    }
    let mut reader = FrameReader::new(nonce, secret, me);
    // Who connects has something to say. Only a peer that has proven itself may be silent: strangers do not get to
    // hold connections open.
    let mut patience = IO_DEADLINE;
    while let Ok(body) = read_frame(&mut stream, patience, &counters).await {
        match reader.decode(&body) {
            Ok(envelope) => {
                patience = READER_IDLE;
                counters.received();
                // A full inbox means that this node cannot keep up: dropping beats queueing without end.
                if inbox.try_send(envelope).is_err() {
                    counters.undelivered();
                }
            }
            Err(error) => {
                counters.refused(error);
                // Whoever sends nonsense or guesses at the secret may start again with a new connection.
                if error != FrameError::Misdirected {
                    return;
                }
            }
        }
    }
}

async fn read_frame(stream: &mut TcpStream, patience: Duration, counters: &Counters) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    within(patience, stream.read_exact(&mut length[..1])).await?;
    within(IO_DEADLINE, stream.read_exact(&mut length[1..])).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        counters.refused(FrameError::Oversized);
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Grows with what really comes, so that a length alone costs no memory.
    let mut body = Vec::with_capacity(length.min(64 * 1024));
    within(IO_DEADLINE, (&mut *stream).take(length as u64).read_to_end(&mut body)).await?;
    if body.len() < length {
        counters.refused(FrameError::Malformed);
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}
