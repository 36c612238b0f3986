use std::fmt;
use std::net::IpAddr;

use coord_api::{Key, Result};

use crate::{Secret, invalid};

/// Where a store is, as a URL names it; never holds a password.
///
/// `etcd://h1:2379,h2:2379/prefix`, `zk://h1:2181,h2:2181/chroot`, with TLS `etcds://` and `zks://`, and `mem://name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl {
    /// Which store, and whether by TLS.
    pub scheme: Scheme,
    /// The servers, each `host:port`; for memory the name of the store, if it has one.
    pub hosts: Vec<String>,
    /// Everything is kept below this key.
    pub prefix: Key,
}

/// The beginning of a store's URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `etcd://`
    Etcd,
    /// `etcds://`: etcd by TLS.
    Etcds,
    /// `zk://`
    Zk,
    /// `zks://`: ZooKeeper by TLS.
    Zks,
    /// `mem://`: in the memory of this process. One name, one store.
    Mem,
}

/// What a URL says beside the place: `user:password@`.
pub(crate) type Userinfo = (String, Option<Secret>);

// === impl StoreUrl ===

impl StoreUrl {
    /// The place, and who we are there. Errors show no password.
    pub(crate) fn parse(text: &str) -> Result<(StoreUrl, Option<Userinfo>)> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(invalid(format!(
                "store: {:?} is not a store's URL; it looks like etcd://localhost:2379 or zk://localhost:2181",
                without_userinfo(text)
            )));
        };
        let scheme = Scheme::named(scheme)?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if path.contains('@') {
            return Err(invalid(
                "store: there is an @ after the first / of the URL; in a password write %2F for / and %40 for @",
            ));
        }
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(parse_userinfo(userinfo)?), hosts),
            None => (None, authority),
        };
        if let Some(sign) = ['?', '#']
            .into_iter()
            .find(|&sign| hosts.contains(sign) || path.contains(sign))
        {
            return Err(invalid(format!(
                "store: a store's URL has no part after {sign:?}; further settings go into the configuration file or \
                 the environment"
            )));
        }
        let url = StoreUrl {
            scheme,
            hosts: parse_hosts(scheme, hosts)?,
            prefix: parse_prefix(path)?,
        };
        Ok((url, userinfo))
    }

    /// Whether every server is this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.hosts.iter().all(|host| is_loopback(host))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.hosts.join(","))?;
        if self.prefix.is_root() {
            Ok(())
        } else {
            write!(f, "{}", self.prefix)
        }
    }
}

// === impl Scheme ===

impl Scheme {
    const ALL: [Scheme; 5] = [Scheme::Etcd, Scheme::Etcds, Scheme::Zk, Scheme::Zks, Scheme::Mem];

    /// As it stands before `://`.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Etcd => "etcd",
            Scheme::Etcds => "etcds",
            Scheme::Zk => "zk",
            Scheme::Zks => "zks",
            Scheme::Mem => "mem",
        }
    }

    /// Whether what travels is encrypted.
    pub fn is_tls(self) -> bool {
        matches!(self, Scheme::Etcds | Scheme::Zks)
    }

    fn named(name: &str) -> Result<Scheme> {
        if let Some(scheme) = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name) {
            return Ok(scheme);
        }
        let hint = match name.to_ascii_lowercase().as_str() {
            "zookeeper" | "zoo" => "; did you mean zk:// (or zks:// for TLS)?",
            "http" | "etcd3" | "etcdv3" => "; did you mean etcd://?",
            "https" | "etcd+tls" => "; did you mean etcds://?",
            "memory" => "; did you mean mem://?",
            _ => "",
        };
        let known: Vec<String> = Scheme::ALL
            .iter()
            .map(|scheme| format!("{}://", scheme.name()))
            .collect();
        Err(invalid(format!(
            "store: {:?} is no store that is known{hint}; there are {}",
            shortened(name),
            known.join(", ")
        )))
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Etcd | Scheme::Etcds => 2379,
            Scheme::Zk => 2181,
            Scheme::Zks => 2281,
            Scheme::Mem => 0,
        }
    }
}

fn parse_hosts(scheme: Scheme, hosts: &str) -> Result<Vec<String>> {
    if scheme == Scheme::Mem {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        return match hosts {
            "" => Ok(Vec::new()),
            name if name.chars().all(plain) => Ok(vec![name.to_owned()]),
            name => Err(invalid(format!(
                "store: {:?} is no name of a store in memory; use letters, digits and . _ -",
                shortened(name)
            ))),
        };
    }
    hosts
        .split(',')
        .map(|host| {
            parse_host(scheme, host).map_err(|problem| {
                invalid(format!(
                    "store: {:?} is not a server ({problem}); write host:port, several separated by commas",
                    shortened(host)
                ))
            })
        })
        .collect()
}

fn parse_host(scheme: Scheme, host: &str) -> Result<String, &'static str> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or("its bracket is not closed")?;
        address
            .parse::<std::net::Ipv6Addr>()
            .map_err(|_| "no IPv6 address in its brackets")?;
        (
            format!("[{address}]"),
            port.strip_prefix(':')
                .or(port.is_empty().then_some(""))
                .ok_or("text after the bracket")?,
        )
    } else {
        match host.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err("an IPv6 address needs brackets: [::1]:2379"),
            Some((_, "")) => return Err("its port is missing"),
            Some((name, port)) => (name.to_owned(), port),
            None => (host.to_owned(), ""),
        }
    };
    if name.is_empty() {
        return Err("its name is missing");
    }
    if !name.starts_with('[') && !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        return Err("its name has letters that no host name has");
    }
    let port = match port {
        "" => scheme.default_port(),
        port => port
            .parse()
            .ok()
            .filter(|&port| port != 0)
            .ok_or("its port is not a number from 1 to 65535")?,
    };
    Ok(format!("{name}:{port}"))
}

fn parse_prefix(path: &str) -> Result<Key> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(Key::root()),
        path => Key::new(path).map_err(|problem| invalid(format!("store: the path of the URL: {problem}"))),
    }
}

fn parse_userinfo(userinfo: &str) -> Result<Userinfo> {
    let decoded = |text| {
        percent_decoded(text).ok_or_else(|| {
            invalid("store: user or password in the URL: after % come two hexadecimal digits, and the whole is UTF-8")
        })
    };
    let (user, password) = match userinfo.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (userinfo, None),
    };
    if user.is_empty() {
        return Err(invalid(
            "store: there is nothing before the @ of the URL; write user:password@, or leave it out",
        ));
    }
    Ok((decoded(user)?, password.map(decoded).transpose()?.map(Secret::from)))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// For messages about something that is no URL: whatever it is, not its part before an `@`.
fn without_userinfo(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("…@{}", shortened(rest)),
        None => shortened(text),
    }
}

/// Outside input goes into errors; a megabyte of it would not help anybody.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        StoreUrl::parse(url).unwrap().0.to_string()
    }

    fn refused(url: &str) -> String {
        StoreUrl::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn urls_name_servers_and_a_prefix() {
        assert_eq!(shown("etcd://a:1,b:2/x/y"), "etcd://a:1,b:2/x/y");
        assert_eq!(shown("etcds://a"), "etcds://a:2379");
        assert_eq!(shown("zk://a,b:2182/chroot/"), "zk://a:2181,b:2182/chroot");
        assert_eq!(shown("zk://[::1]:2181"), "zk://[::1]:2181");
        assert_eq!(shown("mem://"), "mem://");
        assert_eq!(shown("mem://tests/a"), "mem://tests/a");
    }

    #[test]
    fn user_and_password_are_decoded_and_not_shown() {
        let (url, userinfo) = StoreUrl::parse("etcd://al%40ice:s%3Ae@cret@h:1/p").unwrap();
        let (user, password) = userinfo.unwrap();
        assert_eq!((user.as_str(), password.unwrap().reveal()), ("al@ice", "s:e@cret"));
        assert_eq!(url.to_string(), "etcd://h:1/p");
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write_instead() {
        for (url, says) in [
            ("", "looks like etcd://"),
            ("localhost:2379", "looks like etcd://"),
            ("zookeeper://h", "did you mean zk://"),
            ("http://h:2379", "did you mean etcd://"),
            ("redis://h", "there are etcd://"),
            ("etcd://", "its name is missing"),
            ("etcd://a,,b", "its name is missing"),
            ("etcd://a:", "its port is missing"),
            ("etcd://a:0", "from 1 to 65535"),
            ("etcd://a:99999", "from 1 to 65535"),
            ("etcd://a:x", "from 1 to 65535"),
            ("etcd://::1:2379", "brackets"),
            ("etcd://[::1:2379", "bracket"),
            ("etcd://[zz]:2379", "IPv6"),
            ("etcd://a b:1", "letters"),
            ("etcd://a:1/x//y", "empty segment"),
            ("etcd://a:1/../y", "'..'"),
            ("etcd://a:1/.coord", "reserved"),
            ("etcd://a:1/x?tls=1", "configuration file"),
            ("etcd://a:1#x", "configuration file"),
            ("etcd://u:p/w@a:1", "%2F"),
            ("etcd://@a:1", "user:password@"),
            ("etcd://u:%zz@a:1", "hexadecimal"),
            ("mem://a/b c", "only letters"),
            ("mem://a:1", "letters, digits"),
        ] {
            assert!(refused(url).contains(says), "{url}: {}", refused(url));
        }
    }

    #[test]
    fn no_refusal_shows_a_password() {
        for url in [
            "u:s3cret@h",
            "redis://u:s3cret@h",
            "etcd://u:s3cret@h:x",
            "etcd://u:s3cret@h:1/?x",
            "etcd://u:s3cret%@h",
            "etcd://u:s3cret/x@h",
        ] {
            assert!(!refused(url).contains("s3cret"), "{}", refused(url));
        }
    }

    #[test]
    fn loopback_is_known() {
        for (url, local) in [
            ("etcd://localhost,127.0.0.9:1,[::1]", true),
            ("etcd://localhost,10.0.0.1", false),
            ("zk://localhost.example.com", false),
        ] {
            assert_eq!(StoreUrl::parse(url).unwrap().0.is_loopback(), local, "{url}");
        }
    }
}
