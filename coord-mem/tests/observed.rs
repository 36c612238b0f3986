//! What an operator sees of a session through an outage: log lines, metrics and health.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coord_api::{Backoff, Env, Health, Registration, Registry, RegistryConfig, Session, SessionConfig, SessionState};
use coord_mem::{MemClient, MemStore};
use metrics::atomics::AtomicU64;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tracing_subscriber::fmt::MakeWriter;

const NODE: &str = "localhost:50000";

/// Keeps the log lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().map(|line| line.trim_start().to_owned()).collect()
    }

    fn count(&self, beginning: &str) -> u64 {
        self.lines().iter().filter(|line| line.starts_with(beginning)).count() as u64
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;
    fn make_writer(&self) -> Log {
        self.clone()
    }
}

/// Keeps the metrics, by name and labels.
#[derive(Default)]
struct Metrics(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Metrics {
    fn register(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        self.0.lock().unwrap().entry(name).or_default().clone()
    }

    fn bits(&self, name: &str, more_labels: &str) -> u64 {
        let name = format!("coord_session_{name} driver=memory session={NODE}{more_labels}");
        let all = self.0.lock().unwrap();
        let found = all
            .get(&name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", all.keys()));
        found.load(Ordering::SeqCst)
    }

    fn count(&self, name: &str) -> u64 {
        self.bits(name, "")
    }

    fn seconds_left(&self) -> f64 {
        f64::from_bits(self.bits("deadline_seconds", ""))
    }
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.register(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.register(key))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn open(client: Arc<MemClient>) -> (Session, Registry) {
    let backoff = Backoff {
        jitter: 0.0,
        ..Backoff::default()
    };
    let config = SessionConfig {
        name: NODE.into(),
        backoff,
        ..SessionConfig::default()
    };
    let session = Session::open(client, config).unwrap();
    let registry = Registry::open(session.clone(), RegistryConfig::new(NODE)).unwrap();
    registry.register(Registration::new("nodes", NODE, NODE)).unwrap();
    (session, registry)
}

/// Waits until the log has a line that begins like this.
async fn says(log: &Log, beginning: &str, times: u64) {
    let waiting = async {
        while log.count(beginning) < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(600), waiting).await;
    assert!(waited.is_ok(), "no {beginning:?} in {:#?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_by_log_metrics_and_health() {
    let (log, metrics) = (Log::default(), Metrics::default());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(log.clone())
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .finish();
    let _log = tracing::subscriber::set_default(subscriber);
    let _metrics = metrics::set_default_local_recorder(&metrics);

    let client = MemStore::new(&Env::simulated(1)).client();
    let (session, registry) = open(client.clone());
    registry.settled().await.unwrap();
    says(&log, "DEBUG lease renewed", 2).await;
    assert_eq!(session.health(), Health::Healthy);
    assert_eq!(metrics.count("renewals_total"), 2);
    assert_eq!(metrics.count("failures_total"), 0);
    assert!((14.0..15.0).contains(&metrics.seconds_left()));

    client.faults().cut();
    says(&log, "WARN failed to renew the lease", 1).await;
    let SessionState::Suspended { since, lease } = session.state() else {
        panic!("{:?}", session.state());
    };
    assert_eq!(session.health(), Health::Degraded { since });
    assert!(
        (5.0..10.0).contains(&metrics.seconds_left()),
        "{}",
        metrics.seconds_left()
    );
    says(&log, "WARN failed to grant a lease", 2).await;
    let since = lease.good_until();
    assert_eq!(session.health(), Health::Lost { since });
    assert_eq!(metrics.bits("losses_total", " reason=unreachable"), 1);
    assert_eq!(metrics.seconds_left(), 0.0);

    client.faults().heal();
    says(&log, "INFO registered", 2).await;
    assert_eq!(session.health(), Health::Healthy);
    says(&log, "DEBUG lease renewed", 3).await;

    // The document's sample, line for line; how often a renewal fails before the loss is not in it.
    let mut lines = log.lines();
    lines.dedup_by_key(|line| line.chars().take(20).collect::<String>());
    let sample = [
        "INFO lease granted session=localhost:50000 lease=",
        "INFO registered key=/services/nodes/localhost:50000 lease=",
        "DEBUG lease renewed session=localhost:50000 lease=",
        "WARN failed to renew the lease: renew: the store is unavailable",
        "WARN lease lost: unreachable session=localhost:50000 lease=",
        "WARN no lease, retrying in 1.0s session=localhost:50000",
        "WARN failed to grant a lease: grant: the store is unavailable",
        "INFO lease granted session=localhost:50000 lease=",
        "INFO registered key=/services/nodes/localhost:50000 lease=",
        "DEBUG lease renewed session=localhost:50000 lease=",
    ];
    let told = lines.iter().filter(|line| !line.contains("could not"));
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), sample.len(), "{told:#?}");
    for (told, sample) in told.iter().zip(sample) {
        assert!(told.starts_with(sample), "expected {sample:?}, saw {told:?}");
    }
    let grants: Vec<_> = log
        .lines()
        .into_iter()
        .filter(|line| line.contains("to grant"))
        .collect();
    for (line, delay) in grants.iter().zip(["retrying in 2.0s", "retrying in 4.0s"]) {
        assert!(line.contains(delay), "{line:?}");
    }
    let renewed = log.lines().into_iter().find(|line| line.starts_with("DEBUG")).unwrap();
    assert!(renewed.contains("ttl=15s"), "{renewed:?}");

    let failed = log.count("WARN failed to renew") + log.count("WARN failed to grant");
    assert_eq!(metrics.count("failures_total"), failed);
    assert_eq!(metrics.count("renewals_total"), log.count("DEBUG lease renewed"));
    assert_eq!(metrics.count("epochs_total"), 2);
    // Each failed renewal but the last is tried again, and so is each failed grant.
    assert_eq!(metrics.count("retries_total"), failed - 1);
    registry.close().await.unwrap();
    session.close().await.unwrap();
}
