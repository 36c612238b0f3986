//! Certificates for TLS tests.

use crate::programs;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Whether and how a server's client port speaks TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tls {
    /// Plain TCP.
    #[default]
    Off,
    /// The server shows a certificate.
    Server,
    /// The server shows a certificate and demands one of the client.
    Mutual,
}

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub cert: PathBuf,
    /// The unencrypted PKCS #8 key.
    pub key: PathBuf,
}

/// A private certificate authority with a server's and a client's certificate, made with the `openssl` program.
#[derive(Debug)]
pub struct Certs {
    dir: PathBuf,
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The server's, valid for `localhost` and `127.0.0.1`.
    pub server: Identity,
    /// A client's; its common name is `client`.
    pub client: Identity,
}

// Our own configuration, since the system's may add extensions that strict clients refuse.
const CONFIG: &str = "\
[req]
distinguished_name = dn
prompt = no
[dn]
CN = unused
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
";

impl Certs {
    /// Makes an authority and its first two certificates in `dir`, which is created.
    ///
    /// # Panics
    /// When `openssl` is missing or fails.
    pub fn generate(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("the certificates' folder");
        std::fs::write(dir.join("openssl.cnf"), CONFIG).expect("openssl's configuration");
        let ca = request(dir, "ca", &["-extensions", "ca"]);
        let [server, client] = ["server", "client"].map(|name| leaf(dir, name));
        Self {
            dir: dir.to_owned(),
            ca: ca.cert,
            server,
            client,
        }
    }

    /// Another client certificate of the same authority, with `name` as its common name.
    ///
    /// # Panics
    /// When `openssl` fails.
    pub fn issue(&self, name: &str) -> Identity {
        leaf(&self.dir, name)
    }
}

fn leaf(dir: &Path, name: &str) -> Identity {
    request(dir, name, &["-extensions", "leaf", "-CA", "ca.crt", "-CAkey", "ca.key"])
}

fn request(dir: &Path, name: &str, options: &[&str]) -> Identity {
    let (cert, key) = (format!("{name}.crt"), format!("{name}.key"));
    let output = Command::new(programs::program("openssl", "openssl"))
        .args(["req", "-x509", "-config", "openssl.cnf", "-days", "30", "-nodes"])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-subj", &format!("/CN={name}"), "-keyout", &key, "-out", &cert])
        .args(options)
        .current_dir(dir)
        .output()
        .expect("openssl starts");
    assert!(
        output.status.success(),
        "openssl failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Identity {
        cert: dir.join(cert),
        key: dir.join(key),
    }
}
