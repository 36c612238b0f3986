//! `coord elect` and `coord observe`: killed with -9, stopped, asked to end; one leader at a time.

use std::time::Duration;

use coord_harness::{Proxy, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::store::Store;
use crate::support::{LONG, Running, now_ns};

/// How late a process may notice something on a machine that does other things, too.
const LATE: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(2);

fn candidate(url: &str, name: &str, recipe: &str) -> Running {
    Running::start(
        url,
        &["elect", "boss", "--name", name, "--recipe", recipe, "--ttl", "2s"],
    )
}

/// From when to when somebody said that it leads; those killed are counted until then.
fn reigns(candidates: &[(Running, Option<u64>)]) -> Vec<(u64, u64)> {
    let mut reigns = Vec::new();
    for (candidate, killed) in candidates {
        let mut since = None;
        for row in candidate.rows() {
            let at = row["boot_ns"].as_u64();
            match row["event"].as_str() {
                Some("elected") => since = at,
                Some("unelected") => reigns.push((since.take().expect("it led"), at.expect("a moment"))),
                _ => {}
            }
        }
        if let (Some(since), Some(killed)) = (since, killed) {
            reigns.push((since, *killed));
        }
    }
    reigns.sort_unstable();
    reigns
}

async fn play(store: Store, recipe: &str, slack: Duration) {
    let url = &store.url();
    let mut observer = Running::start(url, &["observe", "boss", "--recipe", recipe]);
    observer
        .row(0, "nobody", |row| row["event"] == "leader" && row["name"].is_null())
        .await;

    let first = candidate(url, "first", recipe);
    let elected = first.event(0, "elected").await;
    assert_eq!(
        (&elected["election"], &elected["name"]),
        (&"boss".into(), &"first".into())
    );
    assert!(elected["boot_ns"].as_u64().unwrap() <= now_ns());
    let sees = |name: &'static str| move |row: &Value| row["event"] == "leader" && row["name"] == name;
    let seen = observer.row(0, "first", sees("first")).await;
    assert_eq!(seen["token"], elected["token"]);

    let second = candidate(url, "second", recipe);
    second.row(0, "first", sees("first")).await;

    // Killed: the next one leads when the lease has ended, with a higher token.
    first.signal(Signal::KILL);
    let killed = now_ns();
    let next = second.event(0, "elected").await;
    let took = Duration::from_nanos(next["boot_ns"].as_u64().unwrap() - killed);
    assert!(took <= TTL + slack + LATE, "{took:?}");
    assert!(next["token"].as_u64() > elected["token"].as_u64());
    observer.row(0, "second", sees("second")).await;

    // Stopped for longer than its lease: another leads meanwhile, and it says since when it did not.
    let third = candidate(url, "third", recipe);
    third.row(0, "second", sees("second")).await;
    second.signal(Signal::STOP);
    third.event(0, "elected").await;
    second.signal(Signal::CONT);
    second.event(0, "unelected").await;

    // Asked to end: it resigns, and the next one leads without waiting for any lease.
    let mut third = third;
    third.terminate().await;
    let last = third
        .rows()
        .into_iter()
        .rfind(|row| row["event"] == "unelected")
        .expect("it says so");
    assert_eq!(last["reason"], "resigned");
    let resigned = last["boot_ns"].as_u64().unwrap();
    let again = second
        .row(0, "second again", |row| {
            row["event"] == "elected" && row["boot_ns"].as_u64() > Some(resigned)
        })
        .await;
    assert!(
        Duration::from_nanos(again["boot_ns"].as_u64().unwrap() - resigned) < TTL,
        "{again}"
    );
    let mut second = second;
    second.terminate().await;
    observer
        .row(0, "nobody in the end", |row| {
            row["event"] == "leader" && row["name"].is_null() && row["boot_ns"].as_u64() > Some(resigned)
        })
        .await;
    observer.terminate().await;

    let reigns = reigns(&[(first, Some(killed)), (second, None), (third, None)]);
    assert_eq!(reigns.len(), 4, "{reigns:?}");
    for pair in reigns.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two leaders at once: {reigns:?}");
    }
}

#[tokio::test]
async fn leaders_follow_each_other_on_etcd() {
    play(Store::etcd().await, "sequence", Duration::from_secs(1)).await;
}

#[tokio::test]
async fn leaders_follow_each_other_on_etcd_by_cas() {
    play(Store::etcd().await, "cas", Duration::from_secs(1)).await;
}

#[tokio::test]
async fn leaders_follow_each_other_on_zookeeper() {
    play(Store::zookeeper().await, "sequence", Duration::from_secs(1)).await;
}

#[tokio::test]
async fn leaders_follow_each_other_on_zookeeper_by_cas() {
    play(Store::zookeeper().await, "cas", Duration::from_secs(1)).await;
}

/// The store is a black hole: the leader says that it does not lead before the lease can end, with no word from the store.
async fn cut_off(store: Store) {
    let way = Proxy::start(store.node().client_addr()).await;
    let leader = candidate(&store.url_at(way.addr()), "cut-off", "sequence");
    leader.event(0, "elected").await;
    let standby = candidate(&store.url(), "standby", "sequence");
    standby.row(0, "the leader", |row| row["name"] == "cut-off").await;
    way.black_hole();
    let unelected = leader.event(0, "unelected").await;
    let elected = standby.event(0, "elected").await;
    assert!(
        unelected["boot_ns"].as_u64() < elected["boot_ns"].as_u64(),
        "{unelected} {elected}"
    );
    way.pass();
    eventually(LONG, "it waits in line again", async || {
        leader.rows().iter().any(|row| row["name"] == "standby")
    })
    .await;
    for mut candidate in [standby, leader] {
        candidate.terminate().await;
    }
}

#[tokio::test]
async fn a_leader_that_is_cut_off_from_etcd_says_so_in_time() {
    cut_off(Store::etcd().await).await;
}

#[tokio::test]
async fn a_leader_that_is_cut_off_from_zookeeper_says_so_in_time() {
    cut_off(Store::zookeeper().await).await;
}

#[tokio::test]
async fn a_leader_whose_reader_has_gone_resigns() {
    let store = Store::etcd().await;
    let url = &store.url();
    let mut command = crate::support::command(&["--store", url, "--json", "elect", "boss", "--ttl", "30s"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = tokio::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("elected") {
        line.clear();
        tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut line)
            .await
            .unwrap();
    }
    drop(stdout);
    tokio::time::timeout(LONG, child.wait()).await.unwrap().unwrap();
    // Not after 30 s: it has resigned.
    let mut next = Running::start(url, &["elect", "boss"]);
    let asked = now_ns();
    let elected = next.event(0, "elected").await;
    assert!(Duration::from_nanos(elected["boot_ns"].as_u64().unwrap() - asked) < Duration::from_secs(10));
    next.terminate().await;
}
