//! The web pages, and who may tell a node what to do.

use std::time::Duration;

use coord_harness::eventually;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::company::LONG;

/// Status and body of a plain request.
pub(crate) async fn request(at: &str, method: &str, path: &str, header: &str) -> Result<(u16, String), String> {
    let exchange = async {
        let mut stream = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n{header}\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .map_err(|error| error.to_string())?;
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or("no status")?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok((status, body.to_owned()))
    };
    tokio::time::timeout(Duration::from_secs(20), exchange)
        .await
        .map_err(|_| "no answer".to_owned())?
}

pub(crate) async fn coord(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_coord"))
        .args(arguments)
        .env_remove("COORD_STORE")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LONG, output)
        .await
        .expect("it ends")
        .expect("coord starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A node with a store of its own, in memory; killed at the end.
pub(crate) struct Alone {
    child: tokio::process::Child,
    pub(crate) node: String,
    pub(crate) http: String,
}

pub(crate) async fn alone(more: &[&str]) -> Alone {
    use tokio::io::AsyncBufReadExt;
    let mut child = Command::new(env!("CARGO_BIN_EXE_coord"))
        .args([
            "node",
            "--json",
            "--store",
            "mem://alone",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
        ])
        .args(more)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("coord starts");
    let output = child.stdout.take().expect("it is piped");
    let mut lines = tokio::io::BufReader::new(output).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let row: Value = serde_json::from_str(&line).unwrap();
    // Read on, or it ends with the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Alone {
        child,
        node: row["node"].as_str().unwrap().to_owned(),
        http: row["http"].as_str().unwrap().to_owned(),
    }
}

impl Alone {
    pub(crate) async fn ready(&self) {
        eventually(LONG, "ready", async || {
            let (status, body) = request(&self.http, "GET", "/ready", "").await?;
            if status == 200 { Ok(()) } else { Err(body) }
        })
        .await;
    }
}

#[tokio::test]
async fn the_pages_have_the_customary_shape() {
    let alone = alone(&[]).await;
    alone.ready().await;
    let get = async |path: &str| request(&alone.http, "GET", path, "").await.unwrap();
    assert_eq!(get("/alive").await.0, 200);
    let (_, members) = get("/cluster/members").await;
    let members: Value = serde_json::from_str(&members).unwrap();
    assert_eq!(members["selfNode"], *alone.node);
    assert_eq!(members["leader"], *alone.node);
    assert_eq!(members["members"][0]["node"], *alone.node);
    assert_eq!(members["members"][0]["status"], "Up");
    assert_eq!(members["unreachable"], Value::Array(vec![]));
    let (_, seeds) = get("/bootstrap/seed-nodes").await;
    let seeds: Value = serde_json::from_str(&seeds).unwrap();
    assert_eq!(seeds["seedNodes"][0]["node"], *alone.node);
    let (_, metrics) = get("/metrics").await;
    assert!(
        metrics.contains("# TYPE coord_bootstrap_formed_total counter\ncoord_bootstrap_formed_total 1\n"),
        "{metrics}"
    );
    assert_eq!(get("/nothing").await.0, 404);
    let (code, words, _) = coord(&["members", "--at", &alone.http]).await;
    assert_eq!(code, 0);
    assert!(words.contains(&alone.node) && words.contains("leader"), "{words}");
}

#[tokio::test]
async fn a_node_that_waits_is_alive_and_not_ready() {
    let alone = alone(&["--join-only"]).await;
    eventually(LONG, "a reason", async || {
        let (status, body) = request(&alone.http, "GET", "/ready", "").await?;
        assert_eq!(status, 503);
        if body.contains("there is no cluster") {
            Ok(())
        } else {
            Err(body)
        }
    })
    .await;
    assert_eq!(request(&alone.http, "GET", "/alive", "").await.unwrap().0, 200);
}

#[tokio::test]
async fn only_who_knows_the_secret_tells_a_node_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, secret: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, secret).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file("right", "sesame\n"), file("wrong", "guess\n"));
    let mut alone = alone(&["--secret-file", &right]).await;
    alone.ready().await;
    for attempt in [vec![], vec!["--secret-file", &wrong]] {
        let (code, _, says) = coord(&[&["leave", "--at", &alone.http][..], &attempt].concat()).await;
        assert_eq!(code, 1);
        assert!(says.contains("secret") && !says.contains("guess"), "{says}");
    }
    let unproven = request(&alone.http, "POST", "/cluster/leave", "coord-proof: a:b:c\r\n").await;
    assert_eq!(unproven.unwrap().0, 403);
    let (code, _, says) = coord(&["down", "127.0.0.1:1", "--at", &alone.http, "--secret-file", &right]).await;
    assert!(code == 1 && says.contains("no member"), "{says}");
    let (code, says, _) = coord(&["leave", "--at", &alone.http, "--secret-file", &right]).await;
    assert!(code == 0 && says.contains("leaves"), "{says}");
    let status = tokio::time::timeout(LONG, alone.child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "it left");
}

#[tokio::test]
async fn listening_beyond_this_machine_takes_a_secret() {
    for flags in [
        ["--listen", "0.0.0.0:0", "--http", "127.0.0.1:0"],
        ["--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"],
    ] {
        let (code, _, says) = coord(&[&["node", "--store", "mem://x"][..], &flags].concat()).await;
        assert_eq!(code, 2, "{says}");
        assert!(says.contains("--secret-file") && says.contains("--insecure"), "{says}");
    }
}

#[tokio::test]
async fn a_node_that_finds_no_cluster_in_time_gives_up() {
    let arguments = [
        "node",
        "--store",
        "mem://x",
        "--listen",
        "127.0.0.1:0",
        "--join-only",
        "--give-up-after",
        "1s",
    ];
    let (code, _, says) = coord(&arguments).await;
    assert_eq!(code, 75, "{says}");
    assert!(says.contains("only joins"), "{says}");
}

#[tokio::test]
async fn a_node_whose_words_nobody_reads_ends_when_told_to() {
    let (reader, mut words) = std::io::pipe().unwrap();
    // As much as a pipe takes: the next word has no room.
    std::io::Write::write_all(&mut words, &[b'x'; 65536]).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let http = port.to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_coord"))
        .args(["node", "--store", "mem://x", "--listen", "127.0.0.1:0", "--http", &http])
        .stdout(words)
        .kill_on_drop(true)
        .spawn()
        .expect("coord starts");
    eventually(LONG, "ready", async || {
        let (status, body) = request(&http, "GET", "/ready", "").await?;
        if status == 200 { Ok(()) } else { Err(body) }
    })
    .await;
    let pid = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid as i32));
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM).unwrap();
    let status = tokio::time::timeout(LONG, child.wait())
        .await
        .expect("it ends")
        .unwrap();
    assert!(status.success(), "it left: {status}");
    drop(reader);
}

#[tokio::test]
async fn the_demo_shows_the_whole_story() {
    let (code, story, says) = coord(&["demo", "--nodes", "3"]).await;
    assert_eq!(code, 0, "{says}\n{story}");
    assert_eq!(story.matches('✓').count(), 8, "{story}");
}
