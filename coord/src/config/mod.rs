mod check;
mod settings;
mod sources;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use coord_api::{ElectionConfig, Key, Result, SessionConfig};

use crate::url::Userinfo;
use crate::{Secret, StoreUrl, invalid};
pub use settings::Setting;
pub use sources::{Override, Sources};
pub use value::parse_duration;

#[doc = include_str!("config.md")]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Where the store is.
    pub store: StoreUrl,
    /// The name to authenticate with; goes together with the password.
    pub user: Option<String>,
    /// Never shown.
    pub password: Option<Secret>,
    /// The explicit word that a password may travel unencrypted to another machine. Default: false.
    pub allow_plaintext_password: bool,
    /// The certificates, for `etcds://` and `zks://`.
    pub tls: TlsFiles,
    /// The deadline of each call when nobody asks for a tighter one. Default (`None`): 5 s, or the session's ttl if
    /// that is shorter.
    pub call_deadline: Option<Duration>,
    /// How long work needs to stop when told; it is told that much before its leadership ends. Default: 250 ms.
    pub stop_within: Duration,
    /// The lease that elections and registrations live under. Its ttl is 10 s by default.
    pub session: SessionConfig,
    /// What only ZooKeeper needs to know.
    pub zookeeper: ZooKeeperSettings,
}

/// Certificates, as PEM files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// Whom to trust: the certificates of the authorities that signed the servers'.
    pub ca: Option<PathBuf>,
    /// Our own certificate, where the servers ask for one (mutual TLS); goes together with its key.
    pub certificate: Option<PathBuf>,
    /// The key of our own certificate.
    pub key: Option<PathBuf>,
    /// The name in the servers' certificates, where it is not the host in the URL. Only for etcd.
    pub domain: Option<String>,
}

/// What only ZooKeeper needs to know. The defaults are ZooKeeper's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZooKeeperSettings {
    /// The servers' `tickTime`. Default: 2 s.
    pub tick: Duration,
    /// The session timeout of the shared connection, which carries reads and watches. Default: 6 s.
    pub session_timeout: Duration,
}

// === impl Config ===

impl Config {
    /// This store, and defaults for the rest. A user and password in the URL are taken, with a warning: command lines
    /// and process lists show them.
    pub fn new(url: &str) -> Result<Config> {
        let (store, userinfo) = StoreUrl::parse(url)?;
        let mut config = Config::of(store);
        if let Some(userinfo) = userinfo {
            config.take(userinfo)?;
        }
        Ok(config)
    }

    /// Reads the configuration: the file is overridden by the environment, and that by the overrides. Everything that
    /// is wrong is refused here, with its place and what to write instead.
    pub fn load(sources: &Sources) -> Result<Config> {
        let config = sources.load()?;
        config.check()?;
        Ok(config)
    }

    /// The settings of a [`Session`](crate::Session) on this store.
    pub fn session_config(&self) -> SessionConfig {
        self.session.clone()
    }

    /// The settings of an [`Election`](crate::Election), with this configuration's
    /// [`stop_within`](Config::stop_within).
    pub fn election_config(&self, key: Key, name: impl Into<String>) -> ElectionConfig {
        ElectionConfig {
            stop_within: self.stop_within,
            ..ElectionConfig::new(key, name)
        }
    }

    /// The deadline of each call: what is configured, or the default that fits the ttl.
    pub fn effective_call_deadline(&self) -> Duration {
        let default = Duration::from_secs(5).min(self.session.ttl);
        self.call_deadline.unwrap_or(default)
    }

    fn of(store: StoreUrl) -> Config {
        Config {
            store,
            user: None,
            password: None,
            allow_plaintext_password: false,
            tls: TlsFiles::default(),
            call_deadline: None,
            stop_within: Duration::from_millis(250),
            session: SessionConfig {
                ttl: Duration::from_secs(10),
                ..SessionConfig::default()
            },
            zookeeper: ZooKeeperSettings::default(),
        }
    }

    /// What the URL says about us; together with another word on it, it is refused.
    fn take(&mut self, (user, password): Userinfo) -> Result<()> {
        if self.user.is_some() || (password.is_some() && self.password.is_some()) {
            return Err(invalid(
                "user and password stand in the store's URL and in the configuration, too; leave them out of the URL",
            ));
        }
        if password.is_some() {
            tracing::warn!(
                "the store's URL holds a password, which process lists and shell histories show; better give it by \
                 password_file, or by the environment variable COORD_PASSWORD"
            );
        }
        self.user = Some(user);
        self.password = self.password.take().or(password);
        Ok(())
    }
}

// === impl ZooKeeperSettings ===

impl Default for ZooKeeperSettings {
    fn default() -> ZooKeeperSettings {
        ZooKeeperSettings {
            tick: Duration::from_secs(2),
            session_timeout: Duration::from_secs(6),
        }
    }
}
