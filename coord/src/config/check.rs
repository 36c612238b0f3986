use std::time::Duration;

use coord_api::{Result, margin};

use crate::{Config, Scheme, invalid};

impl Config {
    /// Refuses what cannot work or cannot be safe, with the arithmetic. [`connect`](crate::connect) and
    /// [`load`](Config::load) do this by themselves.
    pub fn check(&self) -> Result<()> {
        self.check_times()?;
        self.check_credentials()?;
        self.check_tls()
    }

    fn check_times(&self) -> Result<()> {
        let (ttl, stop, margin) = (self.session.ttl, self.stop_within, margin(self.session.ttl));
        let needed = stop + margin;
        if needed * 2 > ttl {
            return Err(invalid(format!(
                "session.ttl = {ttl:?} is too short: stop_within {stop:?} + margin {margin:?} = {needed:?}, which may \
                 take at most half of it, {:?}, so that one lost renewal does no harm; raise session.ttl to {:?} at \
                 least, or lower stop_within",
                ttl / 2,
                shortest_ttl(stop),
            )));
        }
        if let Some(deadline) = self.call_deadline {
            if deadline.is_zero() {
                return Err(invalid(
                    "call_deadline is zero: no call could ever succeed; 5s is a good value",
                ));
            }
            if deadline > ttl {
                return Err(invalid(format!(
                    "call_deadline = {deadline:?} is longer than session.ttl = {ttl:?}: a call could be answered \
                     {:?} after the lease that it was made under has ended; raise session.ttl to {deadline:?} at \
                     least, or lower call_deadline",
                    deadline - ttl,
                )));
            }
        }
        for (key, duration) in [
            ("zookeeper.tick", self.zookeeper.tick),
            ("zookeeper.session_timeout", self.zookeeper.session_timeout),
        ] {
            if duration.is_zero() {
                return Err(invalid(format!("{key} is zero; leave it out for ZooKeeper's default")));
            }
        }
        Ok(())
    }

    fn check_credentials(&self) -> Result<()> {
        if self.store.scheme == Scheme::Mem {
            return Ok(());
        }
        match (&self.user, &self.password) {
            (Some(_), None) => Err(invalid(
                "a user is given without a password; add password_file, password_env or COORD_PASSWORD",
            )),
            (None, Some(_)) => Err(invalid("a password is given without a user; add `user`, or COORD_USER")),
            (Some(_), Some(_))
                if !self.store.scheme.is_tls() && !self.store.is_loopback() && !self.allow_plaintext_password =>
            {
                Err(invalid(format!(
                    "the password would travel in plain text to {}; use {}s:// with tls.ca, or say \
                     allow_plaintext_password = true (COORD_ALLOW_PLAINTEXT_PASSWORD=true) if everybody on the way \
                     may know it",
                    self.store.hosts.join(","),
                    self.store.scheme.name(),
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_tls(&self) -> Result<()> {
        let (scheme, tls) = (self.store.scheme, &self.tls);
        if scheme == Scheme::Mem {
            return Ok(());
        }
        if !scheme.is_tls() {
            return if tls.is_empty() {
                Ok(())
            } else {
                let name = scheme.name();
                Err(invalid(format!(
                    "certificates are given (tls.…), but {name}:// does not use them; write {name}s://, or leave them out"
                )))
            };
        }
        if tls.ca.is_none() {
            return Err(invalid(format!(
                "{}:// needs tls.ca (COORD_TLS_CA), the PEM file with the certificate of the authority that signed the \
                 servers'",
                scheme.name()
            )));
        }
        match (&tls.certificate, &tls.key, &tls.domain) {
            (Some(_), None, _) => Err(invalid("tls.certificate is given without tls.key")),
            (None, Some(_), _) => Err(invalid("tls.key is given without tls.certificate")),
            (_, _, Some(_)) if scheme == Scheme::Zks => Err(invalid(
                "tls.domain is not possible with zks://; name the servers in the URL as their certificates do",
            )),
            _ => Ok(()),
        }
    }
}

impl crate::TlsFiles {
    fn is_empty(&self) -> bool {
        *self == crate::TlsFiles::default()
    }
}

/// The shortest ttl of which work that takes `stop` to stop, and the margin, take half.
fn shortest_ttl(stop: Duration) -> Duration {
    // The margin is 100 ms, or 2 % of the ttl if that is more: ttl = 2 (stop + ttl / 50).
    let floor = 2 * (stop + Duration::from_millis(100));
    floor.max(stop * 50 / 24 + Duration::from_millis(1))
}
