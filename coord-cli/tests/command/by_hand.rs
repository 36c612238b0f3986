//! The contract by hand: get, create, update, delete, list, watch.

use std::time::Duration;

use coord_harness::eventually;
use rustix::process::Signal;
use serde_json::json;

use crate::store::Store;
use crate::support::{LONG, Running, command, coord, finish};

async fn play(store: Store) {
    let url = &store.url();
    let run = async |args: &[&str]| coord(url, args).await;

    // What is not there.
    let missing = run(&["get", "/a/b"]).await;
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("/a/b: there is no such entry"), "{missing:?}");
    assert_eq!(run(&["update", "/a/b", "x"]).await.code, Some(1));
    assert_eq!(run(&["list", "/a"]).await.ok().stdout, "");

    // Create, once; and whatever is in a value, the terminal is not driven by it.
    let created = run(&["--json", "create", "/a/b", "\u{1b}[31mone\n"]).await.ok();
    let row = &created.rows()[0];
    assert_eq!(
        (&row["key"], &row["value"], &row["lease"]),
        (&json!("/a/b"), &json!("\u{1b}[31mone\n"), &json!(null))
    );
    assert!(!created.stdout.contains('\u{1b}'));
    let taken = run(&["create", "/a/b", "two"]).await;
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("exists already"), "{taken:?}");
    assert_eq!(run(&["get", "/a/b"]).await.ok().stdout, "\\u{1b}[31mone\\n\n");
    assert_eq!(run(&["get", "/a/b", "--raw"]).await.ok().stdout, "\u{1b}[31mone\n");

    // Conditional writes; the value from standard input.
    let version = row["version"].as_str().unwrap();
    let updated = run(&["--json", "update", "/a/b", "two", "--version", version])
        .await
        .ok();
    assert_eq!(updated.rows()[0]["created"], row["created"]);
    let refused = run(&["delete", "/a/b", "--version", version]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("another version"), "{refused:?}");
    let mut piped = command(&["--store", url, "update", "/a/b", "-"]);
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"three\0\xff").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    piped.stdin(file);
    finish(piped).await.ok();
    let mut raw = command(&["--store", url, "get", "/a/b", "--raw"]);
    assert_eq!(raw.output().await.unwrap().stdout, b"three\0\xff");

    // Ephemeral ones end by their ttl, not with the command; the store names sequential ones.
    let lived = run(&["--json", "create", "/a/short", "x", "--ttl", "2s"]).await.ok();
    assert_eq!(lived.rows()[0]["ttl_ms"], 2000);
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let row = run(&["--json", "create", "/a/queue", "x", "--ttl", "20s", "--sequential"])
            .await
            .ok()
            .rows()
            .remove(0);
        assert!(row["key"].as_str().unwrap().starts_with("/a/queue/~"), "{row}");
        tokens.push(row["created"].as_u64().unwrap());
    }
    assert!(tokens[0] < tokens[1]);
    assert_eq!(run(&["--json", "list", "/a/queue"]).await.ok().rows().len(), 2);
    let all = run(&["--json", "list", "/", "--recursive"]).await.ok().rows();
    assert!(all.iter().any(|row| row["key"] == "/a/b") && all.len() >= 5, "{all:?}");
    eventually(LONG, "the end of the short one", async || {
        run(&["get", "/a/short"]).await.code == Some(1)
    })
    .await;

    // Watch: the state, a change, a deletion.
    let mut watch = Running::start(url, &["watch", "/a/b"]);
    watch.event(0, "state").await;
    run(&["update", "/a/b", "four"]).await.ok();
    watch
        .row(1, "the update", |row| row["event"] == "put" && row["value"] == "four")
        .await;
    assert_eq!(run(&["delete", "/a"]).await.code, Some(1), "it has children");
    run(&["delete", "/a", "--recursive"]).await.ok();
    watch.event(1, "delete").await;
    watch.terminate().await;
    assert_eq!(run(&["list", "/a"]).await.ok().stdout, "");
}

#[tokio::test]
async fn the_contract_by_hand_on_etcd() {
    play(Store::etcd().await).await;
}

#[tokio::test]
async fn the_contract_by_hand_on_zookeeper() {
    play(Store::zookeeper().await).await;
}

#[tokio::test]
async fn a_command_whose_reader_has_gone_ends_without_a_word() {
    let mut watch = command(&["--store", "mem://", "--json", "watch", "/a"]);
    watch
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = watch.spawn().unwrap();
    // One line, as `head -1` does; nothing more is written, and still it ends.
    let mut stdout = tokio::io::BufReader::new(child.stdout.take().unwrap());
    tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut String::new())
        .await
        .unwrap();
    drop(stdout);
    let output = tokio::time::timeout(LONG, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test]
async fn ctrl_c_ends_a_watch_well_and_a_second_one_at_once() {
    let mut watch = Running::start("mem://", &["watch", "/a"]);
    watch.event(0, "state").await;
    watch.signal(Signal::INT);
    assert_eq!(watch.ended().await.code(), Some(0));

    // A store that does not answer: closing takes its time; who asks twice does not want to wait for it.
    let hole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("etcd://{}", hole.local_addr().unwrap());
    let mut elect = Running::start(&url, &["elect", "a"]);
    elect.says("waiting for the store").await;
    elect.signal(Signal::INT);
    tokio::time::sleep(Duration::from_millis(1)).await;
    elect.signal(Signal::INT);
    assert!(matches!(elect.ended().await.code(), Some(0 | 130)));
}

#[tokio::test]
async fn a_password_in_the_url_works_and_warns() {
    let server = Store::etcd().await;
    let store = &server.url().replace("etcd://", "etcd://me:hunter2@");
    let done = coord(store, &["create", "/a", "x"]).await.ok();
    assert!(
        done.stderr.contains("COORD_PASSWORD") && !done.stderr.contains("hunter2"),
        "{done:?}"
    );
    let quiet = coord(&server.url(), &["get", "/a"]).await.ok();
    assert_eq!(quiet.stderr, "");
}
