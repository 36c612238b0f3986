//! Who may do what, and over which wire.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use coord_api::{CoordinatorExt, Env, ErrorKind, Expect};
use coord_etcd::{EtcdConfig, EtcdCoordinator, EtcdTls};
use coord_harness::{Certs, EtcdCluster, EtcdOptions, Tls, ZkEnsemble, ZkOptions};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_drivers_speak_tls_in_one_process() {
    for mode in [Tls::Server, Tls::Mutual] {
        let etcd = EtcdCluster::start(EtcdOptions {
            tls: mode,
            ..EtcdOptions::default()
        });
        let (etcd, zk) = tokio::join!(etcd, secure(mode));
        let certs = etcd.certs().unwrap();
        let mut beside = EtcdConfig::new(etcd.endpoints());
        beside.tls = Some(EtcdTls {
            ca: certs.ca.clone(),
            identity: (mode == Tls::Mutual).then(|| (certs.client.cert.clone(), certs.client.key.clone())),
            domain: None,
        });
        let beside = EtcdCoordinator::open(beside, Env::system()).unwrap();
        let ours = open(ZkConfig {
            tls: Some(tls(zk.certs().unwrap(), mode == Tls::Mutual)),
            ..config(zk.connect_string())
        });
        heals(&ours).await;
        beside.create_persistent(&key("/x"), "x").await.unwrap();
    }
}

/// What was logged, by everybody: the log of one thread alone would miss the driver's tasks.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

fn keep_log() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let keep = || {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("nobody else keeps a log");
        log
    };
    LOG.get_or_init(keep).clone()
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_ever_shown_and_who_has_none_is_warned() {
    const PASSWORD: &str = "tr0ub4dor";
    let log = keep_log();
    let ensemble = support::ensemble(1).await;
    let named = |user: &str| ZkConfig {
        auth: Some(ZkAuth {
            user: user.into(),
            password: PASSWORD.into(),
        }),
        ..config(ensemble.connect_string() + "/private")
    };
    // The first one makes the root, and so decides whose it is.
    let alice = open(named("alice"));
    heals(&alice).await;
    let mallory = open(named("mallory"));
    let refused = mallory.create_persistent(&key("/x"), "x").await.unwrap_err();
    ensemble.node(0).kill();
    let hasty = alice.within(Duration::from_millis(700));
    let unreachable = hasty.create_persistent(&key("/x"), "x").await.unwrap_err();
    let shown = format!(
        "{:?} {refused:?} {refused} {unreachable:?} {unreachable}",
        named("alice")
    );
    assert!(log.text().contains("session"), "the log was kept");
    for text in [&shown, &log.text()] {
        let at = text.find(PASSWORD);
        assert!(at.is_none(), "{}", &text[at.unwrap_or(0).saturating_sub(200)..]);
    }
    open(config(ensemble.connect_string()));
    assert!(log.text().contains("no credentials for ZooKeeper"));
}
