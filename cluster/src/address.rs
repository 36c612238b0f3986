use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest host name that DNS allows; anything longer is refused before it can fill the gossip state.
const MAX_HOST_BYTES: usize = 253;

/// Where a node is reached: `host:port`.
///
/// Addresses are ordered by host and then by port as a number; the leader is the first member in this order.
///
/// ```
/// use coord_cluster::Address;
///
/// let address: Address = "db-1.example:7400".parse()?;
/// assert_eq!((address.host(), address.port()), ("db-1.example", 7400));
/// assert!("[::1]:7400".parse::<Address>().is_ok());
/// assert!("no-port".parse::<Address>().is_err());
/// # Ok::<(), coord_cluster::InvalidAddress>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    host: Arc<str>,
    port: u16,
}

/// The text is not a `host:port` that a node could listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: expected host:port with a host of 1 to 253 printable characters")]
pub struct InvalidAddress(String);

impl Address {
    /// An address from its parts.
    ///
    /// # Errors
    /// When the host is empty, too long, or holds white space or control characters.
    pub fn new(host: &str, port: u16) -> Result<Self, InvalidAddress> {
        let printable = host.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != '@');
        if host.is_empty() || host.len() > MAX_HOST_BYTES || !printable {
            return Err(InvalidAddress(
                host.chars().take(64).collect::<String>().escape_debug().to_string(),
            ));
        }
        Ok(Self {
            host: host.into(),
            port,
        })
    }

    /// The host part; an IPv6 address keeps its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port part.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        // Nodes pass addresses around by clone: most comparisons are of one host with itself.
        let hosts = if Arc::ptr_eq(&self.host, &other.host) {
            Ordering::Equal
        } else {
            self.host.cmp(&other.host)
        };
        hosts.then(self.port.cmp(&other.port))
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || InvalidAddress(text.chars().take(64).collect::<String>().escape_debug().to_string());
        let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(refused());
        }
        Self::new(host, port.parse().map_err(|_| refused())?)
    }
}

impl From<std::net::SocketAddr> for Address {
    fn from(address: std::net::SocketAddr) -> Self {
        let host = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Self {
            host: host.into(),
            port: address.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&*self.host, self.port).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (host, port) = <(String, u16)>::deserialize(deserializer)?;
        Self::new(&host, port).map_err(de::Error::custom)
    }
}
