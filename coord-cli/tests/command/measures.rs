//! `coord check`, `coord conformance`, `coord bench`.

use coord_harness::{EtcdCluster, EtcdOptions};

use crate::store::Store;
use crate::support::coord;

async fn conformance(url: &str) {
    let done = coord(url, &["--json", "conformance", "--at-once", "24"]).await;
    let rows = done.rows();
    let failed: Vec<_> = rows.iter().filter(|row| row["passed"] != true).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(done.code, Some(0));
    let mut names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(
        names.len(),
        coord_conformance::BEHAVIOURS.len(),
        "one row for each behaviour"
    );
    // Nothing is left in the store.
    let left = coord(url, &["list", "/"]).await.ok();
    assert!(!left.stdout.contains("conformance"), "{left:?}");
}

#[tokio::test]
async fn conformance_passes_on_memory() {
    conformance("mem://").await;
}

#[tokio::test]
async fn conformance_passes_on_etcd() {
    conformance(&Store::etcd().await.url()).await;
}

#[tokio::test]
async fn conformance_passes_on_zookeeper() {
    conformance(&Store::zookeeper().await.url()).await;
}

/// A store that is full takes no write: promises are not kept, each row says so, and so does the exit code.
#[tokio::test]
async fn conformance_of_a_store_that_does_not_keep_its_promises_fails() {
    let options = EtcdOptions {
        quota_bytes: Some(1),
        ..EtcdOptions::default()
    };
    let store = Store::Etcd(EtcdCluster::start(options).await);
    let done = coord(&store.url(), &["--json", "conformance", "--only", "revoke"]).await;
    assert_eq!(done.code, Some(1), "{done:?}");
    let rows = done.rows();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row["passed"] == false),
        "{rows:?}"
    );
    assert!(done.stderr.contains("were not kept"), "{done:?}");
}

async fn check(url: &str) {
    let done = coord(url, &["--json", "check", "--ttl", "3s"]).await.ok();
    let row = &done.rows()[0];
    for (field, ms) in [("granted_ttl_ms", 3000), ("give_up_ms", 2900), ("stop_ms", 2650)] {
        assert_eq!(row[field], ms, "{field} of {row}");
    }
    assert!(row["worst_takeover_ms"].as_u64() > Some(3000), "{row}");
    assert_eq!(row["endpoints"][0]["error"], serde_json::Value::Null);
    let words = coord(url, &["check"]).await.ok().stdout;
    assert!(words.contains("take-over") && words.contains("answers"), "{words}");
}

async fn bench(url: &str) {
    for recipe in ["sequence", "cas"] {
        let args = [
            "--json",
            "bench",
            "handover",
            "--candidates",
            "4",
            "--rounds",
            "10",
            "--recipe",
            recipe,
        ];
        let done = coord(url, &args).await.ok();
        let row = done.rows().pop().expect("a last row");
        assert!(
            row["p50_us"].as_u64() > Some(0) && row["p50_us"].as_u64() <= row["p99_us"].as_u64(),
            "{row}"
        );
        assert!(row["requests_per_handover"].as_f64() > Some(2.0), "{row}");
    }
    let done = coord(url, &["--json", "bench", "ops", "--count", "20"]).await.ok();
    assert_eq!(done.rows().len(), 6);
    let left = coord(url, &["list", "/"]).await.ok();
    assert!(!left.stdout.contains("bench"), "{left:?}");
}

#[tokio::test]
async fn check_and_bench_measure_etcd() {
    let store = Store::etcd().await;
    check(&store.url()).await;
    bench(&store.url()).await;
}

#[tokio::test]
async fn check_and_bench_measure_zookeeper() {
    let store = Store::zookeeper().await;
    check(&store.url()).await;
    bench(&store.url()).await;
}

#[tokio::test]
async fn the_requests_of_a_hand_over_do_not_grow_with_the_candidates() {
    let requests = async |candidates: &str| {
        let args = [
            "--json",
            "bench",
            "handover",
            "--candidates",
            candidates,
            "--rounds",
            "10",
        ];
        let row = coord("mem://bench", &args).await.ok().rows().pop().expect("a last row");
        row["requests_per_handover"].as_f64().unwrap()
    };
    let (few, many) = (requests("3").await, requests("48").await);
    assert!(many <= few + 1.0, "{few} for 3 candidates, {many} for 48");
}
