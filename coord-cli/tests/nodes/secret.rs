//! Both sides prove the secret: who does not know it learns nothing, is told nothing, and is not believed.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::company::LONG;
use crate::middleman::{Middleman, exchange, ok, proof};
use crate::pages::{Alone, alone, coord, request};

/// The secret of a node, in files as they might be given.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn with(&self, name: &str, secret: &[u8]) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, secret).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

async fn guarded(files: &Files) -> (Alone, String) {
    let right = files.with("right", b"sesame\n");
    let alone = alone(&["--secret-file", &right]).await;
    alone.ready().await;
    (alone, right)
}

fn forged() -> String {
    r#"{"selfNode":"evil:1","cluster":"00","leader":"evil:1","members":[{"node":"evil:1","status":"Up"}],"unreachable":[]}"#
        .to_owned()
}

#[tokio::test]
async fn who_is_in_the_cluster_is_told_to_nobody_without_the_secret() {
    let files = Files::new();
    let (alone, right) = guarded(&files).await;
    let wrong = files.with("wrong", b"guess\n");
    for page in ["/cluster/members", "/bootstrap/seed-nodes"] {
        for header in ["", "coord-proof: a:b:c\r\n"] {
            let (status, body) = request(&alone.http, "GET", page, header).await.unwrap();
            assert!(status == 403 && !body.contains(&alone.node), "{page}: {status} {body}");
        }
    }
    // Whoever watches whether it lives needs no secret.
    for page in ["/alive", "/ready", "/metrics"] {
        assert_eq!(request(&alone.http, "GET", page, "").await.unwrap().0, 200, "{page}");
    }
    for attempt in [vec![], vec!["--secret-file", &wrong]] {
        let (code, words, says) = coord(&[&["members", "--at", &alone.http][..], &attempt].concat()).await;
        assert!(code == 1 && words.is_empty(), "{code} {words}");
        assert!(says.contains("--secret-file") && !says.contains("guess"), "{says}");
    }
    let (code, words, says) = coord(&["members", "--at", &alone.http, "--secret-file", &right]).await;
    assert!(code == 0 && words.contains(&alone.node), "{says}");
}

#[tokio::test]
async fn an_impostor_is_not_believed_and_learns_no_secret() {
    let files = Files::new();
    let right = files.with("right", b"sesame\n");
    for trick in ["no proof", "a made-up proof", "the proof that it was given"] {
        let impostor = Middleman::start(move |asked| {
            let header = match trick {
                "no proof" => String::new(),
                "a made-up proof" => format!("coord-proof: {}\r\n", "0".repeat(64)),
                _ => {
                    let given = proof(&asked).and_then(|proof| proof.rsplit_once(':'));
                    given.map_or(String::new(), |(_, tag)| format!("coord-proof: {tag}\r\n"))
                }
            };
            let body = if asked.contains("/control/challenge") {
                r#"{"challenge":"0123456789abcdef"}"#.to_owned()
            } else {
                forged()
            };
            Box::pin(async move { ok(&body, &header) })
        })
        .await;
        for order in [&["members"][..], &["leave"], &["down", "127.0.0.1:1"]] {
            let (code, words, says) = coord(&[order, &["--at", &impostor.at, "--secret-file", &right]].concat()).await;
            assert!(code == 1 && words.is_empty(), "{trick}: {code} {words}");
            assert!(
                says.contains("does not prove") && !says.contains("evil"),
                "{trick}: {says}"
            );
        }
        let heard = impostor.heard().concat();
        assert!(proof(&heard).is_some(), "it was asked");
        assert!(!heard.contains("sesame"), "{heard}");
    }
}

#[tokio::test]
async fn who_is_no_node_at_all_is_told_nothing() {
    let files = Files::new();
    let right = files.with("right", b"sesame\n");
    for answer in [
        "garbage".to_owned(),
        ok("", ""),
        ok("[]", ""),
        ok(r#"{"challenge":7}"#, ""),
        ok(r#"{"challenge":"a\r\nb: c"}"#, ""),
        ok(&format!(r#"{{"challenge":"{}"}}"#, "0".repeat(300)), ""),
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{".to_owned(),
    ] {
        let told = answer.clone();
        let stranger = Middleman::start(move |_| {
            let told = told.clone();
            Box::pin(async move { told })
        })
        .await;
        let (code, words, says) = coord(&["leave", "--at", &stranger.at, "--secret-file", &right]).await;
        assert!(
            code != 0 && words.is_empty() && says.contains(&stranger.at),
            "{answer:?}: {says}"
        );
        let heard = stranger.heard().concat();
        assert!(!heard.contains("/cluster/leave"), "{heard}");
    }
}

#[tokio::test]
async fn what_was_recorded_is_worthless_on_both_sides() {
    let files = Files::new();
    let (alone, right) = guarded(&files).await;
    let answers = Arc::<Mutex<Vec<String>>>::default();
    let (record, node) = (answers.clone(), alone.http.clone());
    // A relay changes nothing: what comes through it is genuine.
    let relay = Middleman::start(move |asked| {
        let (record, node) = (record.clone(), node.clone());
        Box::pin(async move {
            let answer = exchange(&node, &asked).await;
            record.lock().unwrap().push(answer.clone());
            answer
        })
    })
    .await;
    let (code, words, says) = coord(&["members", "--at", &relay.at, "--secret-file", &right]).await;
    assert!(code == 0 && words.contains(&alone.node), "{says}");

    let question = relay.heard().last().cloned().unwrap();
    let again = exchange(&alone.http, &question).await;
    assert!(
        again.starts_with("HTTP/1.1 403") && !again.contains(&alone.node),
        "{again}"
    );
    assert_eq!(proof(&again), None, "nothing is proven to who has proven nothing");

    let recorded = answers.lock().unwrap().clone();
    assert_eq!(recorded.len(), 2, "the challenge and the answer");
    let player = Middleman::start(move |asked| {
        let answer = recorded[usize::from(!asked.contains("/control/challenge"))].clone();
        Box::pin(async move { answer })
    })
    .await;
    let (code, words, says) = coord(&["members", "--at", &player.at, "--secret-file", &right]).await;
    assert!(
        code == 1 && words.is_empty() && says.contains("does not prove"),
        "{says}"
    );
}

#[tokio::test]
async fn what_was_changed_on_the_way_is_noticed_on_both_sides() {
    let files = Files::new();
    let (alone, right) = guarded(&files).await;
    let (node, me) = (alone.http.clone(), alone.node.clone());
    let lies = Middleman::start(move |asked| {
        let (node, me) = (node.clone(), me.clone());
        // As long as the truth, so that only the proof can tell.
        let lie = me.replace("127.0.0.1", "127.0.0.9");
        Box::pin(async move { exchange(&node, &asked).await.replace(&me, &lie) })
    })
    .await;
    let (code, words, says) = coord(&["members", "--at", &lies.at, "--secret-file", &right]).await;
    assert!(
        code == 1 && words.is_empty() && says.contains("does not prove"),
        "{says}"
    );

    let node = alone.http.clone();
    let twists = Middleman::start(move |asked| {
        let node = node.clone();
        // The order to put somebody else down becomes one to leave.
        let twisted = asked.replace("/cluster/down", "/cluster/leave");
        Box::pin(async move { exchange(&node, &twisted).await })
    })
    .await;
    let (code, _, says) = coord(&["down", &alone.node, "--at", &twists.at, "--secret-file", &right]).await;
    assert!(code == 1 && says.contains("403"), "{says}");
    alone.ready().await;
}

#[tokio::test]
async fn an_order_for_a_node_with_a_secret_is_not_carried_out_by_one_without() {
    let files = Files::new();
    let right = files.with("right", b"sesame\n");
    let alone = alone(&[]).await;
    alone.ready().await;
    for order in ["leave", "members"] {
        let (code, _, says) = coord(&[order, "--at", &alone.http, "--secret-file", &right]).await;
        assert!(code == 1 && says.contains("no secret"), "{says}");
    }
    alone.ready().await;
}

#[tokio::test]
async fn a_file_that_holds_no_secret_is_refused() {
    let files = Files::new();
    let folder = files.0.path().to_str().unwrap().to_owned();
    let missing = format!("{folder}/missing");
    let empty = files.with("empty", b" \n\n");
    let huge = files.with("huge", &[b'x'; 5000]);
    for file in [&folder, &missing, &empty, &huge, "/dev/zero"] {
        for order in [
            &["members", "--at", "127.0.0.1:1"][..],
            &["node", "--store", "mem://x", "--listen", "127.0.0.1:0"],
        ] {
            let (code, _, says) = coord(&[order, &["--secret-file", file]].concat()).await;
            assert!(code == 2 && says.contains(file), "{file}: {code} {says}");
        }
    }
}

#[tokio::test]
async fn nothing_that_is_sent_to_a_node_stops_it() {
    let files = Files::new();
    let (alone, right) = guarded(&files).await;
    let giant = format!(
        "POST /cluster/leave HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    let header = format!("GET /alive HTTP/1.1\r\nHost: x\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    for sent in [
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\0\u{1}\u{2}\r\n\r\n",
        "GET /cluster/members HTTP/1.1\r\nHost: x\r\ncoord-proof: :::\r\n\r\n",
        "GET /cluster/members HTTP/1.1\r\nHost: x\r\ncoord-proof: \u{e9}:\u{e9}:\u{e9}\r\n\r\n",
        "POST /cluster/leave HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "DELETE /cluster/leave HTTP/1.1\r\nHost: x\r\n\r\n",
        &giant,
        &header,
    ] {
        let sent = sent.to_owned();
        let at = alone.http.clone();
        let told = tokio::time::timeout(LONG, tokio::spawn(async move { send(&at, &sent).await }));
        let answer = told.await.unwrap().unwrap();
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    let (code, words, _) = coord(&["--json", "members", "--at", &alone.http, "--secret-file", &right]).await;
    let page: Value = serde_json::from_str(&words).unwrap();
    assert!(code == 0 && page["members"][0]["status"] == "Up", "{words}");
}

/// Like [`exchange`], for what a node may stop to read.
async fn send(at: &str, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    let _ = stream.shutdown().await;
    let mut answer = vec![];
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
