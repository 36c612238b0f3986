//! Each fault of the proxy, against a server that echoes.

use coord_harness::{Direction, Flow, Proxy, eventually};
use std::{
    io::ErrorKind,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const SOON: Duration = Duration::from_secs(5);
/// How long silence has to last to count; waiting for nothing to happen cannot be polled for.
const SILENCE: Duration = Duration::from_millis(60);

async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    });
    addr
}

async fn connected() -> (Proxy, TcpStream) {
    let proxy = Proxy::start(echo_server().await).await;
    let client = passing(&proxy).await;
    (proxy, client)
}

/// A new connection that has carried five bytes both ways.
async fn passing(proxy: &Proxy) -> TcpStream {
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    assert_eq!(read(&mut client, 5).await, b"hello");
    client
}

async fn read(client: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    timeout(SOON, client.read_exact(&mut bytes))
        .await
        .expect("in time")
        .unwrap();
    bytes
}

async fn silent(client: &mut TcpStream) -> bool {
    timeout(SILENCE, client.read(&mut [0; 16])).await.is_err()
}

async fn assert_reset(client: &mut TcpStream) {
    let read = timeout(SOON, client.read(&mut [0; 16])).await.expect("an end in time");
    assert_eq!(
        read.expect_err("a reset, not an orderly end").kind(),
        ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn passes_bytes_and_ends_and_counts_them() {
    let (proxy, mut client) = connected().await;
    let stats = proxy.stats();
    assert_eq!((stats.accepted, stats.live), (1, 1));
    assert_eq!((stats.to_server.received, stats.to_server.forwarded), (5, 5));
    assert_eq!((stats.to_client.received, stats.to_client.forwarded), (5, 5));
    client.shutdown().await.unwrap();
    assert_eq!(
        timeout(SOON, client.read(&mut [0; 1])).await.unwrap().unwrap(),
        0,
        "the end comes back"
    );
    eventually(SOON, "the connection ends", async || proxy.stats().live == 0).await;
}

#[tokio::test]
async fn four_megabytes_pass_unharmed() {
    let (_proxy, client) = connected().await;
    let sent: Vec<u8> = (0..4_000_000_u32).map(|i| (i % 251) as u8).collect();
    let (mut reader, mut writer) = client.into_split();
    let mut got = vec![0; sent.len()];
    let (written, read) = timeout(SOON, async {
        tokio::join!(writer.write_all(&sent), reader.read_exact(&mut got))
    })
    .await
    .unwrap();
    written.unwrap();
    read.unwrap();
    assert!(got == sent);
}

#[tokio::test]
async fn delays_each_direction_without_adding_up() {
    let (proxy, mut client) = connected().await;
    proxy.delay(Duration::from_millis(50));
    let start = Instant::now();
    for _ in 0..5 {
        client.write_all(b"x").await.unwrap();
    }
    read(&mut client, 5).await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(100), "{took:?}");
    assert!(
        took < Duration::from_millis(400),
        "delays of pipelined requests add up: {took:?}"
    );

    proxy.set(Direction::ToServer, Flow::Delay(Duration::from_secs(3600)));
    client.write_all(b"late").await.unwrap();
    assert!(silent(&mut client).await);
    proxy.pass();
    assert_eq!(
        read(&mut client, 4).await,
        b"late",
        "a shorter delay counts for bytes that wait already"
    );
}

#[tokio::test]
async fn cut_closes_and_refuses_until_healed() {
    let (proxy, mut client) = connected().await;
    proxy.cut();
    let refused = TcpStream::connect(proxy.addr()).await.expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(timeout(SOON, client.read(&mut [0; 1])).await.unwrap().unwrap(), 0);
    eventually(SOON, "no connection lives", async || proxy.stats().live == 0).await;
    proxy.pass();
    passing(&proxy).await;
}

#[tokio::test]
async fn reset_ends_existing_connections_with_rst_and_takes_new_ones() {
    let (proxy, mut client) = connected().await;
    // Not yet accepted by the proxy, but connected for the client.
    let mut second = std::net::TcpStream::connect(proxy.addr()).unwrap();
    proxy.reset();
    assert_reset(&mut client).await;
    let end = std::io::Read::read(&mut second, &mut [0; 1]).expect_err("a reset");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    passing(&proxy).await;
}

#[tokio::test]
async fn black_hole_swallows_both_ways_and_resets_the_losers_when_healed() {
    let (proxy, mut loser) = connected().await;
    let mut idle = passing(&proxy).await;
    proxy.black_hole();
    loser.write_all(b"lost").await.unwrap();
    assert!(silent(&mut loser).await);
    let mut late_loser = TcpStream::connect(proxy.addr()).await.unwrap();
    late_loser.write_all(b"lost").await.unwrap();
    let mut late_idle = TcpStream::connect(proxy.addr()).await.unwrap();
    eventually(SOON, "all is swallowed", async || {
        proxy.stats().to_server.received == 18
    })
    .await;
    eventually(SOON, "all are accepted", async || proxy.stats().live == 4).await;
    assert_eq!(proxy.stats().to_server.forwarded, 10);
    proxy.pass();
    assert_reset(&mut loser).await;
    assert_reset(&mut late_loser).await;
    for client in [&mut idle, &mut late_idle] {
        client.write_all(b"again").await.unwrap();
        assert_eq!(read(client, 5).await, b"again");
    }
}

#[tokio::test]
async fn black_hole_hides_the_end_of_the_other_side() {
    let (proxy, client) = connected().await;
    proxy.set(Direction::ToServer, Flow::Drop);
    drop(client);
    assert_eq!(proxy.stats().live, 1);
    tokio::time::sleep(SILENCE).await;
    assert_eq!(proxy.stats().live, 1, "the server was told");
    proxy.pass();
    eventually(SOON, "the connection ends", async || proxy.stats().live == 0).await;
}

#[tokio::test]
async fn dropped_answers_follow_requests_that_arrive() {
    let (proxy, mut client) = connected().await;
    proxy.drop_answers();
    client.write_all(b"write").await.unwrap();
    eventually(SOON, "the server has answered", async || {
        proxy.stats().to_client.received == 10
    })
    .await;
    assert_eq!(proxy.stats().to_server.forwarded, 10);
    assert!(silent(&mut client).await);
    assert_eq!(proxy.stats().to_client.forwarded, 5);
    proxy.pass();
    assert_reset(&mut client).await;
}

#[tokio::test]
async fn held_requests_arrive_late_even_after_the_client_has_gone() {
    let (proxy, mut client) = connected().await;
    proxy.hold_requests();
    client.write_all(b"late").await.unwrap();
    assert!(silent(&mut client).await);
    let mut fresh = TcpStream::connect(proxy.addr()).await.unwrap();
    fresh.write_all(b"gone").await.unwrap();
    drop(fresh);
    eventually(SOON, "both are held", async || proxy.stats().to_server.received == 13).await;
    assert_eq!(proxy.stats().to_server.forwarded, 5);
    proxy.release();
    assert_eq!(read(&mut client, 4).await, b"late");
    eventually(SOON, "both are delivered", async || {
        proxy.stats().to_server.forwarded == 13
    })
    .await;
}

#[tokio::test]
async fn trickle_forwards_a_few_bytes_at_a_time() {
    let (proxy, mut client) = connected().await;
    proxy.set(
        Direction::ToClient,
        Flow::Trickle {
            bytes: 2,
            every: Duration::from_millis(20),
        },
    );
    let start = Instant::now();
    client.write_all(b"0123456789").await.unwrap();
    assert_eq!(read(&mut client, 10).await, b"0123456789");
    assert!(start.elapsed() >= Duration::from_millis(80), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_dead_server_ends_the_connection_and_dropping_the_proxy_ends_all() {
    let proxy = Proxy::start("127.0.0.1:1".parse().unwrap()).await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert!(matches!(
        timeout(SOON, client.read(&mut [0; 1])).await.expect("an end in time"),
        Ok(0) | Err(_)
    ));

    let (proxy, mut client) = connected().await;
    let addr = proxy.addr();
    drop(proxy);
    assert!(matches!(
        timeout(SOON, client.read(&mut [0; 1])).await.expect("an end in time"),
        Ok(0) | Err(_)
    ));
    assert!(TcpStream::connect(addr).await.is_err());
}
