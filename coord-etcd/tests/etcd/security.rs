//! Who may do what, and over which wire.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use coord_api::{Class, Coordinator, CoordinatorExt, Env, ErrorKind, Expect, Target, WatchEvent};
use coord_etcd::{EtcdConfig, EtcdCoordinator, EtcdTls};
use coord_harness::{Certs, EtcdCluster, EtcdOptions, Proxy, Sandbox, Tls, eventually};

use crate::support::{AtWork, LIMIT, SOON, key, open};

const PASSWORD: &str = "tr0ub4dor";

/// An etcd that knows `alice`, who may use what lies below `/app`. Tokens live for this many seconds.
async fn with_users(token_ttl: u64) -> EtcdCluster {
    let etcd = EtcdCluster::start(EtcdOptions {
        args: vec![
            format!("--auth-token-ttl={token_ttl}"),
            // The cheapest: a login is to take no time here.
            "--bcrypt-cost=4".into(),
        ],
        ..EtcdOptions::default()
    })
    .await;
    add_users(&etcd).await;
    etcd.etcdctl(&["auth", "enable"]).await;
    etcd
}

async fn add_users(etcd: &EtcdCluster) {
    for user in ["root", "alice", "mallory"] {
        etcd.etcdctl(&["user", "add", &format!("{user}:{PASSWORD}")]).await;
    }
    etcd.etcdctl(&["role", "add", "root"]).await;
    etcd.etcdctl(&["user", "grant-role", "root", "root"]).await;
    etcd.etcdctl(&["role", "add", "app"]).await;
    etcd.etcdctl(&["role", "grant-permission", "app", "readwrite", "--prefix=true", "/app/"])
        .await;
    etcd.etcdctl(&["user", "grant-role", "alice", "app"]).await;
}

fn config(etcd: &EtcdCluster, user: Option<(&str, &str)>) -> EtcdConfig {
    let mut config = EtcdConfig::new(etcd.endpoints());
    config.root = key("/app");
    config.user = user.map(|(user, _)| user.into());
    config.password = user.map(|(_, password)| password.into());
    config
}

fn alice(etcd: &EtcdCluster) -> Arc<EtcdCoordinator> {
    open(&config(etcd, Some(("alice", PASSWORD))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_do_what_its_role_allows_and_nobody_else() {
    let etcd = with_users(300).await;
    let mut work = AtWork::start(alice(&etcd)).await;
    work.works_again().await;
    let entry = work.client.create_persistent(&key("/mine"), "1").await.unwrap();
    let denied = |error: &ErrorKind| matches!(error, ErrorKind::PermissionDenied(_));
    let unknown = |error: &ErrorKind| matches!(error, ErrorKind::Unauthenticated(_));
    type Expected<'a> = &'a dyn Fn(&ErrorKind) -> bool;
    let others: [(_, Expected<'_>); 3] = [
        (Some(("mallory", PASSWORD)), &denied),
        (Some(("alice", "wr0ng")), &unknown),
        (None, &unknown),
    ];
    for (user, expected) in others {
        let other = open(&config(&etcd, user));
        let started = Instant::now();
        for error in [
            other.get(&entry.key).await.unwrap_err(),
            other.get_latest(&entry.key).await.unwrap_err(),
            other.children(&key("/work")).await.unwrap_err(),
            other.create_persistent(&key("/theirs"), "x").await.unwrap_err(),
            other.update(&entry.key, "x".into(), Expect::Any).await.unwrap_err(),
            other.delete(&entry.key, Expect::Any).await.unwrap_err(),
        ] {
            assert!(expected(error.kind()) && error.is_definite(), "{user:?}: {error:?}");
        }
        let refused = other.watch(&Target::Key(entry.key.clone())).await.unwrap_err();
        assert!(
            matches!(
                refused.kind(),
                ErrorKind::PermissionDenied(_) | ErrorKind::Unauthenticated(_)
            ) && refused.is_definite(),
            "{user:?}: {refused:?}"
        );
        // A refusal is an answer: nobody waits for a deadline to hear it.
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
    assert_eq!(work.client.get(&entry.key).await.unwrap().unwrap().value, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_is_replaced_and_nobody_notices() {
    let etcd = with_users(1).await;
    let work = AtWork::start(alice(&etcd)).await;
    let entry = work.client.create_persistent(&key("/k"), "0").await.unwrap();
    let mut old = work.client.watch(&Target::Key(entry.key.clone())).await.unwrap();
    old.next().await.unwrap().unwrap();
    let mut version = entry.version;
    for round in 1..=2 {
        // Unused for longer than it lives, and than the server takes to notice that.
        work.client.env().sleep(Duration::from_millis(2500)).await;
        let value = format!("{round}");
        match round {
            // What comes first after a pause: a write, or a new watch on a stream whose token has expired.
            1 => {}
            _ => {
                let mut new = work.client.watch(&Target::Key(entry.key.clone())).await.unwrap();
                assert!(matches!(new.next().await, Some(Ok(WatchEvent::State(_)))));
            }
        }
        version = work
            .client
            .update(&entry.key, value.clone().into(), version.into())
            .await
            .unwrap()
            .version;
        work.client.renew(work.lease).await.unwrap();
        loop {
            let event = tokio::time::timeout(SOON, old.next())
                .await
                .expect("the old watch goes on");
            match event.unwrap().unwrap() {
                WatchEvent::Put(entry) if entry.value == value => break,
                WatchEvent::Resync(entries) if entries[0].value == value => break,
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_forgets_all_tokens_and_a_store_may_begin_to_ask_for_users() {
    let etcd = EtcdCluster::start(EtcdOptions {
        args: vec!["--bcrypt-cost=4".into()],
        ..EtcdOptions::default()
    })
    .await;
    let mut work = AtWork::start(alice(&etcd)).await;
    add_users(&etcd).await;
    etcd.etcdctl(&["auth", "enable"]).await;
    work.works_again().await;
    etcd.node(0).kill();
    etcd.node(0).restart();
    work.works_again().await;
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
async fn no_secret_is_ever_shown() {
    let log = keep_log();
    let etcd = with_users(300).await;
    let good = config(&etcd, Some(("alice", PASSWORD)));
    let mut bad = config(&etcd, Some(("alice", "wr0ng")));
    bad.call_deadline = LIMIT;
    let mut shown = String::new();
    // A secret in a URL is of no use to etcd, but people put them there.
    let mut in_url = good.clone();
    in_url.endpoints = vec![format!("http://alice:1nurl@{}", etcd.node(0).client_addr())];
    let in_url_client = open(&in_url);
    let _ = in_url_client.get(&key("/k")).await;
    let (client, refused) = (open(&good), open(&bad));
    client.create_persistent(&key("/k"), "x").await.unwrap();
    let watch = client.watch(&Target::Key(key("/k"))).await.unwrap();
    let errors = [
        refused.get(&key("/k")).await.unwrap_err(),
        refused.watch(&Target::Key(key("/k"))).await.unwrap_err(),
        refused.create_persistent(&key("/k2"), "x").await.unwrap_err(),
    ];
    shown += &format!("{in_url:?} {in_url_client:?}");
    shown += &format!("{good:?} {good:#?} {bad:?} {client:?} {watch:?} {errors:?}");
    errors.iter().for_each(|error| shown += &error.to_string());
    etcd.node(0).kill();
    shown += &format!("{:?}", client.within(LIMIT).get(&key("/k")).await.unwrap_err());
    shown += &format!("{:?}", refused.get(&key("/k")).await.unwrap_err());
    shown += &format!("{:?}", in_url_client.within(LIMIT).get(&key("/k")).await.unwrap_err());
    shown += &String::from_utf8_lossy(&log.0.lock().unwrap());
    assert!(shown.contains("under suspicion"), "the log was kept");
    for secret in [PASSWORD, "wr0ng", "1nurl"] {
        let at = shown.find(secret);
        assert!(at.is_none(), "{}", &shown[at.unwrap_or(0).saturating_sub(200)..]);
    }
}

async fn secure(tls: Tls) -> EtcdCluster {
    EtcdCluster::start(EtcdOptions {
        tls,
        ..EtcdOptions::default()
    })
    .await
}

fn encrypted(etcd: &EtcdCluster, certs: &Certs, mutual: bool) -> EtcdConfig {
    let mut config = EtcdConfig::new(etcd.endpoints());
    config.tls = Some(EtcdTls {
        ca: certs.ca.clone(),
        identity: mutual.then(|| (certs.client.cert.clone(), certs.client.key.clone())),
        domain: None,
    });
    config
}

/// Client and server do not trust each other: a call ends in time, and what it says.
async fn is_refused(mut config: EtcdConfig) -> String {
    config.call_deadline = LIMIT;
    let client = open(&config);
    let started = Instant::now();
    let error = client.create_persistent(&key("/x"), "x").await.unwrap_err();
    assert!(started.elapsed() < LIMIT + Duration::from_secs(3));
    assert!(error.is_transient() && !error.is_definite(), "{error:?}");
    format!("{error}")
}

/// The reason is told by any call that lasts until a handshake has ended; on a busy machine not every one does.
async fn says_certificate(config: EtcdConfig) {
    eventually(SOON, "the reason is told", async || {
        is_refused(config.clone()).await.contains("certificate")
    })
    .await;
}

/// A reason that is known is told, also if the deadline comes while it is tried once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_hides_no_reason() {
    const DEADLINE: Duration = Duration::from_secs(3);
    let etcd = secure(Tls::Server).await;
    let way = Proxy::start(etcd.node(0).client_addr()).await;
    let folder = Sandbox::new();
    let strangers = Certs::generate(&folder.dir().join("certs"));
    let mut config = encrypted(&etcd, &strangers, false);
    config.endpoints = vec![format!("https://{}", way.addr())];
    config.call_deadline = DEADLINE;
    let client = open(&config);
    // The last attempt gets no answer, and less time than a connection may take.
    let hole_at = client.env().now() + DEADLINE - Duration::from_millis(600);
    let hole = async {
        client.env().sleep_until(hole_at).await;
        way.black_hole();
    };
    let name = key("/x");
    let (read, ()) = tokio::join!(client.get(&name), hole);
    let error = read.unwrap_err();
    assert_eq!(error.class(), Class::NotSent, "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_works_and_strangers_are_told_in_time() {
    let etcd = secure(Tls::Server).await;
    let certs = etcd.certs().unwrap();
    let mut work = AtWork::start(open(&encrypted(&etcd, certs, false))).await;
    work.works_again().await;
    etcd.node(0).kill();
    etcd.node(0).restart();
    work.works_again().await;

    // Without a scheme, and under another name of the server's certificate.
    let mut named = encrypted(&etcd, certs, false);
    named.endpoints = vec![etcd.node(0).client_addr().to_string()];
    named.tls.as_mut().unwrap().domain = Some("localhost".into());
    open(&named).get(&key("/x")).await.unwrap();
    named.tls.as_mut().unwrap().domain = Some("elsewhere".into());
    says_certificate(named).await;

    let folder = Sandbox::new();
    let strangers = Certs::generate(&folder.dir().join("certs"));
    says_certificate(encrypted(&etcd, &strangers, false)).await;

    let plain = format!("http://{}", etcd.node(0).client_addr());
    is_refused(EtcdConfig::new([plain])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_works_and_needs_a_certificate() {
    let etcd = secure(Tls::Mutual).await;
    let certs = etcd.certs().unwrap();
    let mut work = AtWork::start(open(&encrypted(&etcd, certs, true))).await;
    work.works_again().await;
    is_refused(encrypted(&etcd, certs, false)).await;
    // Files that hold no certificate are told at once.
    let mut wrong = encrypted(&etcd, certs, true);
    wrong.tls.as_mut().unwrap().identity = Some((certs.client.key.clone(), certs.client.key.clone()));
    let error = EtcdCoordinator::open(wrong, Env::system()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidConfig(_)), "{error:?}");
}
