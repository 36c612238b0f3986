use std::fmt;
use std::time::Duration;

use coord_api::{Error, ErrorKind, Operation, Result};
use zookeeper_client::{Acls, Client, Connector, CreateMode, CreateOptions, TlsOptions};

/// How to reach a ZooKeeper ensemble. Its `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct ZkConfig {
    /// The connect string: `host:port,host:port/chroot`. Everything lives below the chroot, which is made when missing.
    pub servers: String,
    /// The deadline of a call when nobody asked for a tighter one. Default: 5 s.
    pub call_deadline: Duration,
    /// Digest credentials. With them, everything that is made belongs to its creator alone; without, to everybody.
    pub auth: Option<ZkAuth>,
    /// TLS; without it the connection is plain.
    pub tls: Option<ZkTls>,
    /// The session timeout of the shared connection, which carries reads, persistent writes and watches. Default: 6 s.
    /// Leases have sessions of their own, with their own ttl.
    pub session_timeout: Duration,
    /// The servers' `tickTime`, from which [`expiry_slack`](coord_api::Capabilities::expiry_slack) follows. Default:
    /// ZooKeeper's own, 2 s.
    pub tick: Duration,
}

/// User and password of ZooKeeper's `digest` scheme.
#[derive(Clone)]
pub struct ZkAuth {
    /// The user.
    pub user: String,
    /// The password; never shown.
    pub password: String,
}

/// TLS towards ZooKeeper's `secureClientPort`.
#[derive(Clone)]
pub struct ZkTls {
    /// The certificate authority that signed the servers' certificates, as PEM.
    pub ca_pem: String,
    /// For mutual TLS: our own certificate and its key, as PEM; never shown.
    pub identity_pem: Option<(String, String)>,
}

// === impl ZkConfig ===

impl ZkConfig {
    /// A plain, unauthenticated connection to `servers` (`host:port,host:port/chroot`).
    pub fn new(servers: impl Into<String>) -> ZkConfig {
        ZkConfig {
            servers: servers.into(),
            call_deadline: Duration::from_secs(5),
            auth: None,
            tls: None,
            session_timeout: Duration::from_secs(6),
            tick: Duration::from_secs(2),
        }
    }

    /// What can be told to be wrong without asking a server.
    pub(crate) fn check(&self) -> Result<()> {
        let hosts = self.servers.rsplit(',').enumerate().map(|(at, server)| {
            let server = server
                .strip_prefix("tcp://")
                .or(server.strip_prefix("tcp+tls://"))
                .unwrap_or(server);
            match server.find('/') {
                Some(chroot) if at == 0 => &server[..chroot],
                _ => server,
            }
        });
        for host in hosts {
            if host.is_empty() || host.starts_with(':') || host.contains('/') {
                return Err(invalid(format!(
                    "{:?} is not a connect string; it looks like host:2181,host:2181/chroot",
                    self.servers
                )));
            }
        }
        if self.chroot().len() > 1 && self.chroot().ends_with('/') {
            return Err(invalid(format!("the chroot {:?} must not end with '/'", self.chroot())));
        }
        for (name, duration) in [
            ("call_deadline", self.call_deadline),
            ("session_timeout", self.session_timeout),
            ("tick", self.tick),
        ] {
            if duration.is_zero() {
                return Err(invalid(format!("{name} must not be zero")));
            }
        }
        self.tls.as_ref().map(ZkTls::options).transpose().map(|_| ())
    }

    /// The path below which everything lives; `/` without a chroot.
    pub(crate) fn chroot(&self) -> &str {
        let last = self.servers.rsplit(',').next().unwrap_or_default();
        let start = last.find("://").map_or(0, |at| at + 3);
        last[start..].find('/').map_or("/", |at| &last[start + at..])
    }

    /// When a wire counts as dead: early enough to try another server within one call's deadline.
    pub(crate) fn wire_timeout(&self, session_timeout: Duration) -> Duration {
        (session_timeout * 2 / 5)
            .min(self.call_deadline * 2 / 5)
            .max(Duration::from_millis(1))
    }

    /// A connector for a session of this length.
    pub(crate) fn connector(&self, session_timeout: Duration) -> Result<Connector> {
        let mut connector = Client::connector()
            .with_session_timeout(session_timeout)
            .with_connection_timeout(self.wire_timeout(session_timeout))
            .with_fail_eagerly();
        if let Some(auth) = &self.auth {
            connector = connector.with_auth("digest", format!("{}:{}", auth.user, auth.password).as_bytes());
        }
        if let Some(tls) = &self.tls {
            connector = connector.with_tls(tls.options()?);
        }
        Ok(connector)
    }

    /// Connects, with TLS if there is a configuration for it.
    pub(crate) async fn connect(&self, connector: Connector) -> Result<Client, zookeeper_client::Error> {
        match self.tls {
            Some(_) => connector.secure_connect(&self.servers).await,
            None => connector.connect(&self.servers).await,
        }
    }

    /// How to make a node: who may use it follows from whether we have a name.
    pub(crate) fn node(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(match self.auth {
            Some(_) => Acls::creator_all(),
            None => Acls::anyone_all(),
        })
    }
}

fn invalid(what: String) -> Error {
    Error::definite(Operation::Open, None, ErrorKind::InvalidConfig(what))
}

// === impl ZkAuth ===

impl fmt::Debug for ZkAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkAuth")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

// === impl ZkTls ===

impl ZkTls {
    fn options(&self) -> Result<TlsOptions> {
        let bad = |error: zookeeper_client::Error| invalid(format!("TLS: {error}"));
        let options = TlsOptions::default().with_pem_ca(&self.ca_pem).map_err(bad)?;
        match &self.identity_pem {
            None => Ok(options),
            Some((certificate, key)) => options.with_pem_identity(certificate, key).map_err(bad),
        }
    }
}

impl fmt::Debug for ZkTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkTls")
            .field("mutual", &self.identity_pem.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_strings_are_checked_and_their_chroot_found() {
        for (good, chroot) in [
            ("a:1", "/"),
            ("a:1,b:2", "/"),
            ("a:1,b/x/y", "/x/y"),
            ("tcp://a:1,tcp://b:2/x", "/x"),
            ("[::1]:2181/x", "/x"),
        ] {
            let config = ZkConfig::new(good);
            assert!(config.check().is_ok(), "{good}");
            assert_eq!(config.chroot(), chroot, "{good}");
        }
        for bad in ["", "/x", "a:1,,b:2", "a:1/x,b:2", ":2181", "a:1/x/"] {
            assert!(ZkConfig::new(bad).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut config = ZkConfig::new("a:1");
        config.auth = Some(ZkAuth {
            user: "alice".into(),
            password: "hunter2".into(),
        });
        config.tls = Some(ZkTls {
            ca_pem: "ca".into(),
            identity_pem: Some(("certificate".into(), "hunter3".into())),
        });
        let shown = format!("{config:?}");
        assert!(shown.contains("alice") && !shown.contains("hunter"), "{shown}");
    }
}
