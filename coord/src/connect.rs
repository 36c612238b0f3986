use std::sync::Arc;

use coord_api::{Coordinator, Result};

use crate::{Config, Scheme};

/// Opens a coordinator on the store that a URL names, or a [`Config`].
///
/// Returns at once, also while the store is down: connections are made when needed and heal by themselves. Fails only if
/// the configuration cannot work, or if the store's driver was not compiled in. Must be called within a tokio runtime.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> coordkit::Result<()> {
/// use coordkit::{Config, connect};
///
/// let coordinator = connect("mem://example")?;
///
/// let mut config = Config::new("mem://example")?;
/// config.stop_within = std::time::Duration::from_secs(1);
/// let other = connect(&config)?; // a second client of the same store
/// # Ok(()) }
/// # #[cfg(not(feature = "memory"))] fn main() {}
/// ```
pub fn connect(to: impl IntoConfig) -> Result<Arc<dyn Coordinator>> {
    let config = to.into_config()?;
    config.check()?;
    match config.store.scheme {
        Scheme::Etcd | Scheme::Etcds => open_etcd(&config),
        Scheme::Zk | Scheme::Zks => open_zookeeper(&config),
        Scheme::Mem => open_memory(&config),
    }
}

/// What [`connect`] takes: a URL or a [`Config`].
pub trait IntoConfig {
    /// The configuration that it stands for.
    fn into_config(self) -> Result<Config>;
}

impl IntoConfig for &str {
    fn into_config(self) -> Result<Config> {
        Config::new(self)
    }
}

impl IntoConfig for &String {
    fn into_config(self) -> Result<Config> {
        Config::new(self)
    }
}

impl IntoConfig for String {
    fn into_config(self) -> Result<Config> {
        Config::new(&self)
    }
}

impl IntoConfig for Config {
    fn into_config(self) -> Result<Config> {
        Ok(self)
    }
}

impl IntoConfig for &Config {
    fn into_config(self) -> Result<Config> {
        Ok(self.clone())
    }
}

#[cfg(feature = "etcd")]
fn open_etcd(config: &Config) -> Result<Arc<dyn Coordinator>> {
    use coord_etcd::{EtcdConfig, EtcdCoordinator, EtcdTls};

    let tls = config.tls.ca.clone().map(|ca| EtcdTls {
        ca,
        identity: config.tls.certificate.clone().zip(config.tls.key.clone()),
        domain: config.tls.domain.clone(),
    });
    let driver = EtcdConfig {
        root: config.store.prefix.clone(),
        call_deadline: config.effective_call_deadline(),
        user: config.user.clone(),
        password: config.password.as_ref().map(|password| password.reveal().to_owned()),
        tls,
        ..EtcdConfig::new(config.store.hosts.iter().cloned())
    };
    Ok(EtcdCoordinator::open(driver, coord_api::Env::system())?)
}

#[cfg(feature = "zookeeper")]
fn open_zookeeper(config: &Config) -> Result<Arc<dyn Coordinator>> {
    use coord_zk::{ZkAuth, ZkConfig, ZkCoordinator, ZkTls};

    let read = |key: &str, file: &std::path::Path| {
        std::fs::read_to_string(file)
            .map_err(|error| crate::invalid(format!("{key}: cannot read {}: {error}", file.display())))
    };
    let files = &config.tls;
    let identity = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => Some((read("tls.certificate", certificate)?, read("tls.key", key)?)),
        _ => None,
    };
    let tls = match &files.ca {
        Some(ca) => Some(ZkTls {
            ca_pem: read("tls.ca", ca)?,
            identity_pem: identity,
        }),
        None => None,
    };
    let auth = config.user.clone().zip(config.password.as_ref());
    let chroot = match config.store.prefix.is_root() {
        true => "",
        false => config.store.prefix.as_str(),
    };
    let driver = ZkConfig {
        call_deadline: config.effective_call_deadline(),
        auth: auth.map(|(user, password)| ZkAuth {
            user,
            password: password.reveal().to_owned(),
        }),
        tls,
        session_timeout: config.zookeeper.session_timeout,
        tick: config.zookeeper.tick,
        ..ZkConfig::new(format!("{}{chroot}", config.store.hosts.join(",")))
    };
    Ok(ZkCoordinator::open(driver, coord_api::Env::system())?)
}

#[cfg(feature = "memory")]
fn open_memory(config: &Config) -> Result<Arc<dyn Coordinator>> {
    crate::shared_memory::open(config)
}

#[cfg(not(feature = "etcd"))]
fn open_etcd(config: &Config) -> Result<Arc<dyn Coordinator>> {
    Err(not_compiled_in(config, "etcd"))
}

#[cfg(not(feature = "zookeeper"))]
fn open_zookeeper(config: &Config) -> Result<Arc<dyn Coordinator>> {
    Err(not_compiled_in(config, "zookeeper"))
}

#[cfg(not(feature = "memory"))]
fn open_memory(config: &Config) -> Result<Arc<dyn Coordinator>> {
    Err(not_compiled_in(config, "memory"))
}

#[cfg(not(all(feature = "etcd", feature = "zookeeper", feature = "memory")))]
fn not_compiled_in(config: &Config, driver: &str) -> coord_api::Error {
    crate::invalid(format!(
        "{} needs the {driver} driver, which was not compiled in; build coordkit with its feature {driver:?}",
        config.store
    ))
}
