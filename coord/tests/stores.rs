//! `connect` on every store, as a URL or a configuration names it.
#![cfg(all(feature = "etcd", feature = "zookeeper", feature = "memory"))]

use coord_harness::{Certs, EtcdCluster, EtcdOptions, Tls, ZkEnsemble, ZkOptions};
use coordkit::prelude::*;
use coordkit::{ErrorKind, Secret};

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

/// What one client writes at a URL, a second one of the same URL reads, and lies below the prefix.
async fn shares(config: &Config, whole: &Config) {
    let (one, other) = (connect(config).unwrap(), connect(config).unwrap());
    one.create_persistent(&key("/greeting"), "hello").await.unwrap();
    assert_eq!(
        other.get_latest(&key("/greeting")).await.unwrap().unwrap().value,
        "hello"
    );
    let outside = connect(whole).unwrap();
    assert!(outside.get_latest(&key("/some/app/greeting")).await.unwrap().is_some());
    for coordinator in [one, other, outside] {
        coordinator.close().await.unwrap();
    }
}

async fn shares_at(url: &str) {
    shares(
        &Config::new(&format!("{url}/some/app")).unwrap(),
        &Config::new(url).unwrap(),
    )
    .await;
}

#[tokio::test]
async fn etcd_by_url() {
    let etcd = EtcdCluster::start(EtcdOptions {
        nodes: 3,
        ..EtcdOptions::default()
    })
    .await;
    let hosts: Vec<String> = etcd.nodes().iter().map(|node| node.client_addr().to_string()).collect();
    shares_at(&format!("etcd://{}", hosts.join(","))).await;
}

#[tokio::test]
async fn zookeeper_by_url() {
    let zookeeper = ZkEnsemble::start(ZkOptions {
        nodes: 3,
        ..ZkOptions::default()
    })
    .await;
    shares_at(&format!("zk://{}", zookeeper.connect_string())).await;
}

#[tokio::test]
async fn memory_by_url_is_one_store_for_one_name() {
    shares_at("mem://shared").await;
    let (one, other) = (connect("mem://one").unwrap(), connect("mem://other").unwrap());
    one.create_persistent(&key("/a"), "x").await.unwrap();
    assert_eq!(other.get_latest(&key("/a")).await.unwrap(), None);
}

fn with_tls(url: String, certs: &Certs, mutual: bool) -> Config {
    let mut config = Config::new(&url).unwrap();
    config.tls.ca = Some(certs.ca.clone());
    if mutual {
        config.tls.certificate = Some(certs.client.cert.clone());
        config.tls.key = Some(certs.client.key.clone());
    }
    config
}

#[tokio::test]
async fn etcd_by_mutual_tls() {
    let options = EtcdOptions {
        tls: Tls::Mutual,
        ..EtcdOptions::default()
    };
    let etcd = EtcdCluster::start(options).await;
    let url = format!("etcds://{}", etcd.node(0).client_addr());
    let at = |url: String| with_tls(url, etcd.certs().unwrap(), true);
    shares(&at(format!("{url}/some/app")), &at(url)).await;
}

#[tokio::test]
async fn zookeeper_by_tls_with_a_user() {
    let options = ZkOptions {
        tls: Tls::Server,
        ..ZkOptions::default()
    };
    let zookeeper = ZkEnsemble::start(options).await;
    let url = format!("zks://{}", zookeeper.connect_string());
    let at = |url: String| {
        let mut config = with_tls(url, zookeeper.certs().unwrap(), false);
        config.user = Some("me".into());
        config.password = Some(Secret::from("hunter2"));
        config
    };
    shares(&at(format!("{url}/some/app")), &at(url.clone())).await;
    // What is made with a user belongs to it.
    let mut other = at(format!("{url}/some/app"));
    other.password = Some(Secret::from("wrong"));
    let other = connect(other).unwrap();
    let denied = other.get_latest(&key("/greeting")).await.unwrap_err();
    assert!(matches!(denied.kind(), ErrorKind::PermissionDenied(_)), "{denied}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_once() {
    let mut config = Config::new("etcds://localhost").unwrap();
    config.tls.ca = Some("/nowhere/ca.pem".into());
    let refused = connect(&config).unwrap_err();
    assert!(refused.to_string().contains("/nowhere/ca.pem"), "{refused}");
    assert!(connect("redis://localhost").is_err());
}
