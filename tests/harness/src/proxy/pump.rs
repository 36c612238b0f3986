//! One direction of one connection.

use super::{Control, Direction, Flow, Shared, stats::TrafficCounters};
use std::{sync::atomic::Ordering::Relaxed, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::{ReadHalf, WriteHalf},
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

const CHUNK: usize = 16 * 1024;
/// With [`CHUNK`], at most 1 MiB waits in each direction of a connection; then the sender feels it.
const CHUNKS: usize = 64;

/// The connection must be reset on both sides.
pub(crate) struct Broken;

/// What a reader hands to its writer.
struct Item {
    came: Instant,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// The sender has closed its side.
    Fin,
    /// The sender's side has failed.
    Rst,
}

/// Moves everything that `from` sends to `to`, as the direction's flow says, up to the end of the stream.
pub(crate) async fn pump(
    shared: &Shared,
    direction: Direction,
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
) -> Result<(), Broken> {
    let (sender, items) = mpsc::channel(CHUNKS);
    let counters = shared.counters.of(direction);
    let writer = Writer {
        direction,
        to,
        counters,
        control: shared.control.subscribe(),
        lost: false,
    };
    let ((), written) = tokio::join!(read(from, sender, counters), writer.run(items));
    written
}

async fn read(mut from: ReadHalf<'_>, items: mpsc::Sender<Item>, counters: &TrafficCounters) {
    let mut buffer = vec![0; CHUNK];
    loop {
        // A writer that has given up wants nothing more.
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            () = items.closed() => return,
        };
        let content = match read {
            Ok(0) => Content::Fin,
            Ok(n) => {
                counters.received.fetch_add(n as u64, Relaxed);
                Content::Bytes(buffer[..n].to_vec())
            }
            Err(_) => Content::Rst,
        };
        let last = !matches!(content, Content::Bytes(_));
        if items
            .send(Item {
                came: Instant::now(),
                content,
            })
            .await
            .is_err()
            || last
        {
            return;
        }
    }
}

struct Writer<'a> {
    direction: Direction,
    to: WriteHalf<'a>,
    counters: &'a TrafficCounters,
    control: watch::Receiver<Control>,
    lost: bool,
}

/// What the flow says about the next bytes.
enum Verdict {
    /// At most so many of them now, and then a pause.
    Forward(usize, Duration),
    Lose,
}

impl Writer<'_> {
    async fn run(mut self, mut items: mpsc::Receiver<Item>) -> Result<(), Broken> {
        loop {
            let item = tokio::select! {
                healed = self.healed(), if self.lost => return healed,
                item = items.recv() => item,
            };
            // Only after an end, which is handled below.
            let Some(Item { came, content }) = item else {
                return Ok(());
            };
            match content {
                Content::Bytes(bytes) => {
                    if !self.forward(&bytes, came).await? {
                        return Ok(());
                    }
                }
                end => match self.verdict(came).await? {
                    // The end of the stream is lost like its bytes, until the heal shows it by a reset.
                    Verdict::Lose => return self.healed().await,
                    Verdict::Forward(..) if matches!(end, Content::Rst) => return Err(Broken),
                    Verdict::Forward(..) => {
                        let _ = self.to.shutdown().await;
                        return Ok(());
                    }
                },
            }
        }
    }

    /// False if the receiver is gone; the opposite direction will find out by reading, and tell as its own flow allows.
    async fn forward(&mut self, mut bytes: &[u8], came: Instant) -> Result<bool, Broken> {
        while !bytes.is_empty() {
            match self.verdict(came).await? {
                Verdict::Lose => return Ok(true),
                Verdict::Forward(most, pause) => {
                    let (now, later) = bytes.split_at(most.clamp(1, bytes.len()));
                    if self.to.write_all(now).await.is_err() {
                        return Ok(false);
                    }
                    self.counters.forwarded.fetch_add(now.len() as u64, Relaxed);
                    bytes = later;
                    if !pause.is_zero() {
                        let _ = tokio::time::timeout(pause, self.control.changed()).await;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Waits until the flow, which may change meanwhile, decides over bytes that came at `came`.
    async fn verdict(&mut self, came: Instant) -> Result<Verdict, Broken> {
        loop {
            let flow = self.control.borrow_and_update().flow(self.direction);
            if self.lost && flow != Flow::Drop {
                return Err(Broken);
            }
            match flow {
                Flow::Pass => return Ok(Verdict::Forward(usize::MAX, Duration::ZERO)),
                Flow::Trickle { bytes, every } => return Ok(Verdict::Forward(bytes, every)),
                Flow::Drop => {
                    self.lost = true;
                    return Ok(Verdict::Lose);
                }
                Flow::Delay(delay) if came + delay <= Instant::now() => {
                    return Ok(Verdict::Forward(usize::MAX, Duration::ZERO));
                }
                Flow::Delay(delay) => tokio::select! {
                    () = sleep_until(came + delay) => {}
                    changed = self.control.changed() => if changed.is_err() { return Err(Broken) },
                },
                Flow::Hold => {
                    if self.control.changed().await.is_err() {
                        return Err(Broken);
                    }
                }
            }
        }
    }

    /// Waits until nothing is dropped any more; then the gap in the stream has to be shown.
    async fn healed(&mut self) -> Result<(), Broken> {
        let direction = self.direction;
        let _ = self
            .control
            .wait_for(|control| control.flow(direction) != Flow::Drop)
            .await;
        Err(Broken)
    }
}
