use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use coord_api::{Error, ErrorKind, Key, Operation, Result};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// How to reach an etcd, and where in it to live.
///
/// ```
/// use coord_etcd::EtcdConfig;
///
/// let mut config = EtcdConfig::new(["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"]);
/// config.user = Some("jobs".into());
/// config.password = Some("secret".into());
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct EtcdConfig {
    /// Where etcd's members listen: `host:port`, `http://host:port` or `https://host:port`. Name all of them: the
    /// driver fails over between those it knows.
    pub endpoints: Vec<String>,
    /// Everything is kept below this key. [`Key::root`] (the default) keeps keys as they are, so that `etcdctl get /jobs`
    /// shows what `/jobs` holds.
    pub root: Key,
    /// The deadline of each call when nobody asks for a tighter one. Default 5 s.
    pub call_deadline: Duration,
    /// The name to authenticate with, together with [`password`](EtcdConfig::password).
    pub user: Option<String>,
    /// Never shown in `Debug`, logs or errors.
    pub password: Option<String>,
    /// TLS, for `https` endpoints and for those without a scheme.
    pub tls: Option<EtcdTls>,
}

/// Certificates, from PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdTls {
    /// Whom to trust: the certificates of the authorities that signed the servers'.
    pub ca: PathBuf,
    /// Our own certificate and its key, where the servers ask for one (mutual TLS).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name in the servers' certificates, where it is not the host in the endpoint.
    pub domain: Option<String>,
}

// === impl EtcdConfig ===

impl EtcdConfig {
    /// These endpoints, and defaults for the rest.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> EtcdConfig {
        EtcdConfig {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            root: Key::root(),
            call_deadline: Duration::from_secs(5),
            user: None,
            password: None,
            tls: None,
        }
    }

    /// The connections to make, none of them made yet. Reads the certificate files.
    pub(crate) fn transports(&self) -> Result<Vec<tonic::transport::Endpoint>> {
        if self.endpoints.is_empty() {
            return Err(invalid("no endpoint is given"));
        }
        if self.call_deadline.is_zero() {
            return Err(invalid("the call deadline is zero"));
        }
        if self.user.is_some() != self.password.is_some() {
            return Err(invalid("user and password go together"));
        }
        let tls = self.tls.as_ref().map(EtcdTls::load).transpose()?;
        self.endpoints
            .iter()
            .map(|endpoint| transport(endpoint, tls.as_ref()))
            .collect()
    }

    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        self.user.clone().zip(self.password.clone())
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An endpoint may carry a secret as well (`http://user:secret@host`), though etcd does not use it.
        let endpoints: Vec<_> = self
            .endpoints
            .iter()
            .map(|endpoint| without_userinfo(endpoint))
            .collect();
        f.debug_struct("EtcdConfig")
            .field("endpoints", &endpoints)
            .field("root", &self.root)
            .field("call_deadline", &self.call_deadline)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("tls", &self.tls)
            .finish()
    }
}

// === impl EtcdTls ===

impl EtcdTls {
    fn load(&self) -> Result<ClientTlsConfig> {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&self.ca)?));
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        if let Some(domain) = &self.domain {
            tls = tls.domain_name(domain);
        }
        Ok(tls)
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| invalid(format!("cannot read {}: {error}", file.display())))
}

fn transport(endpoint: &str, tls: Option<&ClientTlsConfig>) -> Result<tonic::transport::Endpoint> {
    let shown = without_userinfo(endpoint);
    let url = match (endpoint.contains("://"), tls) {
        (true, _) => endpoint.to_owned(),
        (false, Some(_)) => format!("https://{endpoint}"),
        (false, None) => format!("http://{endpoint}"),
    };
    let wrong = |what: String| invalid(format!("endpoint {shown}: {what}"));
    let transport = tonic::transport::Endpoint::from_shared(url)
        .map_err(|_| wrong("not a host and port, or a URL of them".into()))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // etcd closes connections that ping more often than every five seconds, or with no stream open.
        .http2_keep_alive_interval(Duration::from_secs(6))
        .keep_alive_timeout(Duration::from_secs(2))
        .keep_alive_while_idle(false);
    match (transport.uri().scheme_str(), tls) {
        (Some("http"), None) => Ok(transport),
        (Some("https"), Some(tls)) => transport
            .tls_config(tls.clone())
            .map_err(|error| wrong(format!("the certificates cannot be used: {error}"))),
        (Some("https"), None) => Err(wrong("https needs the certificate of an authority (tls.ca)".into())),
        (Some("http"), Some(_)) => Err(wrong("certificates are given, but it is not https".into())),
        _ => Err(wrong("only http and https are understood".into())),
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

fn without_userinfo(endpoint: &str) -> String {
    match (endpoint.split_once("://"), endpoint.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => endpoint.to_owned(),
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::definite(Operation::Open, None, ErrorKind::InvalidConfig(what.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let mut config = EtcdConfig::new(["http://user:s3cret@host:1"]);
        config.user = Some("user".into());
        config.password = Some("s3cret".into());
        assert!(!format!("{config:?}").contains("s3cret"));
        let error = EtcdConfig::new(["ftp://user:s3cret@host:1"]).transports().unwrap_err();
        assert!(!format!("{error:?}").contains("s3cret"));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let refused = |config: EtcdConfig| config.transports().unwrap_err().to_string();
        assert!(refused(EtcdConfig::new(Vec::<String>::new())).contains("no endpoint"));
        assert!(refused(EtcdConfig::new(["http://"])).contains("endpoint"));
        assert!(refused(EtcdConfig::new(["https://a:1"])).contains("authority"));
        let mut half = EtcdConfig::new(["a:1"]);
        half.user = Some("u".into());
        assert!(refused(half).contains("password"));
        let mut no_file = EtcdConfig::new(["a:1"]);
        no_file.tls = Some(EtcdTls::default());
        assert!(refused(no_file).contains("cannot read"));
    }
}
