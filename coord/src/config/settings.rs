use std::path::PathBuf;
use std::time::Duration;

use config::Value;
use coord_api::{Backoff, Strategy};

use super::value::{Parsed, boolean, duration, number, text};

/// One thing that can be configured: its key in the file, its environment variable, what it means.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The key in the TOML file; `session.ttl` is `ttl` in the table `[session]`.
    pub key: &'static str,
    /// What it means, and its default.
    pub help: &'static str,
    pub(super) set: fn(&mut Draft, Value) -> Parsed<()>,
}

/// What was read so far; what is missing has its default.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) store: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) password_env: Option<String>,
    pub(super) allow_plaintext_password: Option<bool>,
    pub(super) ca: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) domain: Option<String>,
    pub(super) call_deadline: Option<Duration>,
    pub(super) stop_within: Option<Duration>,
    pub(super) session_name: Option<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) backoff: BackoffDraft,
    pub(super) tick: Option<Duration>,
    pub(super) session_timeout: Option<Duration>,
}

#[derive(Default)]
pub(super) struct BackoffDraft {
    strategy: Option<String>,
    first: Option<Duration>,
    factor: Option<f64>,
    step: Option<Duration>,
    max: Option<Duration>,
    delay: Option<Duration>,
    jitter: Option<f64>,
    limit: Option<Duration>,
}

macro_rules! settings {
    ($($key:literal => $($field:ident).+ = $parse:expr, $help:literal;)+) => {
        &[$(Setting {
            key: $key,
            help: $help,
            set: |draft, value| {
                draft.$($field).+ = Some($parse(value)?);
                Ok(())
            },
        },)+]
    };
}

impl Setting {
    /// Everything that can be configured: the one list from which file, environment and documentation come.
    pub const ALL: &[Setting] = settings! {
        "store" => store = text, "The store's URL.";
        "user" => user = text, "The name to authenticate with.";
        "password" => password = text, "Its password; better one of the two below.";
        "password_file" => password_file = path, "A file that holds the password and nothing else; a line end after it does not count.";
        "password_env" => password_env = text, "The environment variable that holds the password.";
        "allow_plaintext_password" => allow_plaintext_password = boolean, "The explicit word that a password may travel unencrypted to another machine. Default: false.";
        "tls.ca" => ca = path, "PEM file: the authorities that signed the servers' certificates.";
        "tls.certificate" => certificate = path, "PEM file: our own certificate, for mutual TLS.";
        "tls.key" => key = path, "PEM file: the key of our own certificate.";
        "tls.domain" => domain = text, "The name in the servers' certificates, if it is not the host in the URL (etcd only).";
        "call_deadline" => call_deadline = duration, "How long a call may take. Default: 5s, or the ttl if that is shorter.";
        "stop_within" => stop_within = duration, "How long work needs to stop when told. Default: 250ms.";
        "session.name" => session_name = text, "What logs and metrics call the session. Default: session.";
        "session.ttl" => ttl = duration, "The time to live of the lease. Default: 10s.";
        "session.backoff.strategy" => backoff.strategy = text, "exponential, linear or constant. Default: exponential.";
        "session.backoff.first" => backoff.first = duration, "The first delay after a loss. Default: 1s.";
        "session.backoff.factor" => backoff.factor = number, "Exponential: by how much each delay is longer. Default: 2.";
        "session.backoff.step" => backoff.step = duration, "Linear: what is added each time. Default: 1s.";
        "session.backoff.max" => backoff.max = duration, "The longest delay. Default: 30s.";
        "session.backoff.delay" => backoff.delay = duration, "Constant: the delay. Default: 1s.";
        "session.backoff.jitter" => backoff.jitter = number, "By which share of it each delay is shortened at random. Default: 0.2.";
        "session.backoff.limit" => backoff.limit = duration, "Give up after this long without a lease. Default: never.";
        "zookeeper.tick" => tick = duration, "The servers' tickTime. Default: 2s.";
        "zookeeper.session_timeout" => session_timeout = duration, "The session timeout of the shared connection. Default: 6s.";
    };

    /// The environment variable that sets it: `COORD_SESSION_TTL` for `session.ttl`.
    pub fn variable(&self) -> String {
        format!("COORD_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }

    pub(super) fn named(key: &str) -> Option<&'static Setting> {
        Setting::ALL.iter().find(|setting| setting.key == key)
    }

    /// Whether it names a file, which a configuration file may name relative to itself.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.key, "password_file" | "tls.ca" | "tls.certificate" | "tls.key")
    }

    /// The known key that was probably meant.
    pub(super) fn meant_by(key: &str) -> Option<&'static str> {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let likeness = |known: &str| {
            let whole = strsim::jaro_winkler(known, &key.to_ascii_lowercase());
            // `ttl` outside of its table, or in one with a typing error.
            let by_name = strsim::jaro_winkler(&last(known), &last(key)) * 0.95;
            whole.max(by_name)
        };
        let best = Setting::ALL.iter().map(|setting| (likeness(setting.key), setting.key));
        best.filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, key)| key)
    }
}

fn path(value: Value) -> Parsed<PathBuf> {
    text(value).map(PathBuf::from)
}

// === impl BackoffDraft ===

impl BackoffDraft {
    pub(super) fn finish(self) -> Parsed<Backoff> {
        let seconds = Duration::from_secs;
        let kind = self.strategy.as_deref().unwrap_or("exponential");
        let belongs: &[&str] = match kind {
            "exponential" => &["first", "factor", "max"],
            "linear" => &["first", "step", "max"],
            "constant" => &["delay"],
            other => {
                return Err(format!(
                    "session.backoff.strategy: {other:?} is none; there are exponential, linear and constant"
                ));
            }
        };
        let given = [
            ("first", self.first.is_some()),
            ("factor", self.factor.is_some()),
            ("step", self.step.is_some()),
            ("max", self.max.is_some()),
            ("delay", self.delay.is_some()),
        ];
        if let Some((key, _)) = given.iter().find(|(key, given)| *given && !belongs.contains(key)) {
            return Err(format!(
                "session.backoff.{key} has no meaning with strategy = {kind:?}, which takes {}",
                belongs.join(", ")
            ));
        }
        let first = self.first.unwrap_or(seconds(1));
        let max = self.max.unwrap_or(seconds(30));
        let strategy = match kind {
            "linear" => Strategy::Linear {
                first,
                step: self.step.unwrap_or(seconds(1)),
                max,
            },
            "constant" => Strategy::Constant {
                delay: self.delay.unwrap_or(seconds(1)),
            },
            _ => Strategy::Exponential {
                first,
                factor: self.factor.unwrap_or(2.0) as f32,
                max,
            },
        };
        let default = Backoff::default();
        Ok(Backoff {
            strategy,
            jitter: self.jitter.unwrap_or(default.jitter),
            limit: self.limit,
        })
    }
}
