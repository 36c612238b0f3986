//! Real ZooKeeper servers: start, serve, survive, speak TLS.

use coord_harness::{Tls, ZkEnsemble, ZkOptions, eventually};
use std::{process::Stdio, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SOON: Duration = Duration::from_secs(20);

async fn zxid(zk: &ZkEnsemble, i: usize) -> Option<u64> {
    let srvr = zk.four_letter(i, "srvr").await.ok()?;
    let hex = srvr.lines().find_map(|line| line.strip_prefix("Zxid: 0x"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// A session handshake is a write through the whole ensemble; its answer carries the session's timeout.
async fn open_session(addr: std::net::SocketAddr) -> std::io::Result<i32> {
    let mut request = Vec::from(44_i32.to_be_bytes());
    request.extend([0; 12]); // protocol version, last zxid seen
    request.extend(1000_i32.to_be_bytes()); // timeout
    request.extend([0; 8]); // session id
    request.extend(16_i32.to_be_bytes()); // password
    request.extend([0; 16]);
    let mut stream = tokio::net::TcpStream::connect(addr).await?;
    stream.write_all(&request).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    Ok(i32::from_be_bytes([answer[8], answer[9], answer[10], answer[11]]))
}

#[tokio::test]
async fn one_node_serves_and_keeps_its_data_over_a_kill() {
    let zk = ZkEnsemble::start(ZkOptions::default()).await;
    let node = zk.node(0);
    assert_eq!(zk.four_letter(0, "ruok").await.expect("an answer"), "imok");
    assert!(
        zk.four_letter(0, "mntr")
            .await
            .expect("an answer")
            .contains("zk_server_state\tstandalone")
    );
    assert_eq!(zk.leader().await, Some(0));
    assert_eq!(open_session(node.client_addr()).await.expect("a session"), 1000);
    let before = zxid(&zk, 0).await.expect("a zxid");
    assert!(before > 0, "opening the session was a transaction");

    node.kill();
    assert!(zk.four_letter(0, "ruok").await.is_err());
    node.restart();
    zk.wait_ready(SOON).await;
    assert!(
        zxid(&zk, 0).await.expect("a zxid") >= before,
        "the transactions were lost"
    );
}

#[tokio::test]
async fn three_nodes_elect_another_leader_after_a_kill_and_take_the_old_one_back() {
    let zk = ZkEnsemble::start(ZkOptions {
        nodes: 3,
        ..Default::default()
    })
    .await;
    let old = zk.leader().await.expect("a leader");
    zk.node(old).kill();
    let new = eventually(SOON, "another leader", async || zk.leader().await).await;
    assert_ne!(new, old);
    eventually(SOON, "a session without the old leader", async || {
        open_session(zk.node(new).client_addr()).await
    })
    .await;
    zk.node(old).restart();
    zk.wait_ready(SOON).await;
    assert_eq!(zk.mode(old).await.as_deref(), Some("follower"));
    assert_eq!(zk.connect_string().split(',').count(), 3);
}

#[tokio::test]
async fn a_paused_node_is_silent_until_it_is_resumed() {
    let options = ZkOptions {
        tick: Duration::from_millis(100),
        max_client_cnxns: 7,
        ..Default::default()
    };
    let zk = ZkEnsemble::start(options).await;
    assert!(
        zk.four_letter(0, "conf")
            .await
            .expect("an answer")
            .contains("maxClientCnxns=7")
    );
    zk.node(0).pause();
    assert!(!zk.node(0).is_active());
    assert_eq!(
        zk.four_letter(0, "ruok").await.expect_err("paused").kind(),
        std::io::ErrorKind::TimedOut
    );
    zk.node(0).resume();
    zk.wait_ready(SOON).await;
    zk.node(0).pause();
    zk.node(0).stop().await;
    assert_eq!(zk.node(0).pid(), None, "a paused node can be stopped");
}

#[tokio::test]
async fn mutual_tls_serves_those_with_a_certificate_only() {
    let zk = ZkEnsemble::start(ZkOptions {
        tls: Tls::Mutual,
        ..Default::default()
    })
    .await;
    let certs = zk.certs().expect("TLS is on");
    let known = [&certs.client, &certs.issue("another")];
    for identity in known {
        let answer = ask(
            &zk,
            &[
                "-cert",
                identity.cert.to_str().unwrap(),
                "-key",
                identity.key.to_str().unwrap(),
            ],
        )
        .await;
        assert!(answer.contains("imok"), "{answer}");
    }
    let answer = ask(&zk, &[]).await;
    assert!(!answer.contains("imok"), "served a client without a certificate");
}

/// Says `ruok` through TLS and returns all that comes back.
async fn ask(zk: &ZkEnsemble, identity: &[&str]) -> String {
    let mut client = tokio::process::Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-connect",
            &zk.endpoints()[0],
            "-CAfile",
        ])
        .arg(&zk.certs().expect("TLS is on").ca)
        .args(identity)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("openssl starts");
    // Kept open: at its end openssl would hang up before the answer. The server hangs up itself.
    let mut stdin = client.stdin.take().expect("piped");
    let _ = stdin.write_all(b"ruok").await;
    let mut answer = String::new();
    let mut stdout = client.stdout.take().expect("piped");
    let _ = tokio::time::timeout(SOON, stdout.read_to_string(&mut answer))
        .await
        .expect("the server hangs up");
    answer
}

#[tokio::test]
async fn an_isolated_leader_is_replaced_and_a_wiped_server_learns_again() {
    let zk = ZkEnsemble::start(ZkOptions {
        nodes: 3,
        partitions: true,
        ..Default::default()
    })
    .await;
    let old = eventually(SOON, "a leader", async || zk.leader().await).await;
    zk.isolate(old);
    // The other two wait for it first, and then for each other's votes.
    let new = eventually(3 * SOON, "another leader", async || {
        zk.leader().await.filter(|leader| *leader != old)
    })
    .await;
    eventually(SOON, "the old one serves nobody", async || zk.mode(old).await.is_none()).await;
    zk.rejoin();
    eventually(SOON, "the old one follows", async || {
        zk.mode(old).await.as_deref() == Some("follower")
    })
    .await;

    open_session(zk.node(new).client_addr()).await.expect("a session");
    let seen = zxid(&zk, new).await.expect("a zxid");
    zk.replace(old);
    zk.wait_ready(SOON).await;
    eventually(SOON, "the wiped one knows all again", async || {
        zxid(&zk, old).await.is_some_and(|zxid| zxid >= seen)
    })
    .await;
}
