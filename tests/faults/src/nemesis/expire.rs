//! Ending a ZooKeeper session from outside.

use std::io;
use std::time::Duration;

use coord_harness::ZkEnsemble;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A session's password follows from its number: `java.util.Random` of the number xor this constant of the server's.
const SECRET: i64 = 0xB341_5C00;
const CLOSE: i32 = -11;

/// Takes the session over, and closes it.
pub(super) async fn expire(zookeeper: &ZkEnsemble, session: u64) -> io::Result<()> {
    let mut last = io::Error::other("no server");
    for node in zookeeper.nodes() {
        let closing = async {
            let mut stream = TcpStream::connect(node.client_addr()).await?;
            stream.write_all(&connect(session.cast_signed())).await?;
            let mut length = [0; 4];
            stream.read_exact(&mut length).await?;
            let mut answer = vec![
                0;
                usize::try_from(i32::from_be_bytes(length))
                    .unwrap_or_default()
                    .min(1024)
            ];
            stream.read_exact(&mut answer).await?;
            stream
                .write_all(&framed(&[1_i32.to_be_bytes(), CLOSE.to_be_bytes()].concat()))
                .await?;
            let mut rest = vec![];
            // The server answers and closes.
            let _ = stream.read_to_end(&mut rest).await;
            Ok(())
        };
        match timeout(Duration::from_secs(2), closing).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// Protocol version, last zxid, timeout, session, password, read-only.
fn connect(session: i64) -> Vec<u8> {
    let mut request = vec![];
    request.extend(0_i32.to_be_bytes());
    request.extend(0_i64.to_be_bytes());
    request.extend(4000_i32.to_be_bytes());
    request.extend(session.to_be_bytes());
    request.extend(16_i32.to_be_bytes());
    request.extend(password(session));
    request.push(0);
    framed(&request)
}

fn framed(request: &[u8]) -> Vec<u8> {
    let length = i32::try_from(request.len()).unwrap_or_default();
    [&length.to_be_bytes(), request].concat()
}

/// As `Random.nextBytes` does it: four bytes of each number, the lowest first.
fn password(session: i64) -> Vec<u8> {
    const MULTIPLIER: i64 = 0x5_DEEC_E66D;
    const MASK: i64 = (1 << 48) - 1;
    let mut seed = ((session ^ SECRET) ^ MULTIPLIER) & MASK;
    let mut bytes = vec![];
    for _ in 0..4 {
        seed = seed.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        let number = (seed >> 16) as i32;
        bytes.extend(number.to_le_bytes());
    }
    bytes
}
