//! Who may do what, and over which wire.

use std::time::Duration;

use coord_api::{CoordinatorExt, ErrorKind, Expect};
use coord_harness::{Certs, Tls, ZkEnsemble, ZkOptions};
use coord_zk::{ZkAuth, ZkConfig, ZkTls};

use crate::support::{self, config, heals, key, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_makes_belongs_to_that_user() {
    let ensemble = support::ensemble(1).await;
    let with = |user: &str| ZkConfig {
        auth: Some(ZkAuth {
            user: user.into(),
            password: "secret".into(),
        }),
        ..config(ensemble.connect_string() + "/private")
    };
    // The first one makes the root, and so decides whose it is.
    let alice = open(with("alice"));
    heals(&alice).await;
    let (mallory, nobody) = (
        open(with("mallory")),
        open(config(ensemble.connect_string() + "/private")),
    );
    let name = key("/mine");
    let entry = alice.create_persistent(&name, "1").await.unwrap();
    alice.update(&name, "2".into(), entry.version.into()).await.unwrap();
    for other in [&mallory, &nobody] {
        for error in [
            other.get(&name).await.unwrap_err(),
            other.get_latest(&name).await.unwrap_err(),
            other.create_persistent(&key("/theirs"), "x").await.unwrap_err(),
            other.update(&name, "x".into(), Expect::Any).await.unwrap_err(),
            other.delete(&name, Expect::Any).await.unwrap_err(),
        ] {
            assert!(
                matches!(error.kind(), ErrorKind::PermissionDenied(_)) && error.is_definite(),
                "{error:?}"
            );
            assert!(!format!("{error:?}").contains("secret"));
        }
        let mut watch = other.watch(&coord_api::Target::Key(name.clone())).await.unwrap();
        let refused = watch.next().await.unwrap().unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::PermissionDenied(_)), "{refused:?}");
    }
    assert_eq!(alice.get(&name).await.unwrap().unwrap().value, "2");
}

fn tls(certs: &Certs, mutual: bool) -> ZkTls {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    ZkTls {
        ca_pem: read(&certs.ca),
        identity_pem: mutual.then(|| (read(&certs.client.cert), read(&certs.client.key))),
    }
}

async fn secure(mode: Tls) -> ZkEnsemble {
    ZkEnsemble::start(ZkOptions {
        tls: mode,
        tick: support::TICK,
        ..ZkOptions::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_works_and_a_plain_client_is_told_in_time() {
    let ensemble = secure(Tls::Server).await;
    let encrypted = ZkConfig {
        tls: Some(tls(ensemble.certs().unwrap(), false)),
        ..config(ensemble.connect_string() + "/app")
    };
    heals(&open(encrypted)).await;
    let plain = open(ZkConfig {
        call_deadline: Duration::from_millis(700),
        ..config(ensemble.connect_string())
    });
    let error = support::in_time(&*plain, plain.get(&key("/x"))).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_works_and_needs_a_certificate() {
    let ensemble = secure(Tls::Mutual).await;
    let with = |mutual| ZkConfig {
        tls: Some(tls(ensemble.certs().unwrap(), mutual)),
        call_deadline: Duration::from_millis(if mutual { 5000 } else { 700 }),
        ..config(ensemble.connect_string())
    };
    heals(&open(with(true))).await;
    let nameless = open(with(false));
    let error = support::in_time(&*nameless, nameless.get(&key("/x")))
        .await
        .unwrap_err();
    assert!(error.is_transient(), "{error:?}");
}
