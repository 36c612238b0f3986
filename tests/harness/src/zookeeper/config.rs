//! What a server of an ensemble is started with: ports, configuration file, command line.

use super::{ZkOptions, ways::Ways};
use crate::{
    certs::{Certs, Tls},
    ports::ReservedPort,
};
use std::{
    ffi::OsString,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// The ports of one server.
pub(super) struct Ports {
    pub(super) client: ReservedPort,
    pub(super) secure: ReservedPort,
    pub(super) quorum: ReservedPort,
    pub(super) election: ReservedPort,
}

impl Ports {
    pub(super) fn new() -> Self {
        Self {
            client: ReservedPort::new(),
            secure: ReservedPort::new(),
            quorum: ReservedPort::new(),
            election: ReservedPort::new(),
        }
    }
}

/// The `server.N` lines as server `who` is to see them; none for a single server, which runs standalone.
pub(super) fn members(ports: &[Ports], ways: Option<&Ways>, who: usize) -> String {
    if ports.len() < 2 {
        return String::new();
    }
    let line = |(i, ports): (usize, &Ports)| {
        let (quorum, election) = match ways {
            Some(ways) if i != who => ways.of(who, i),
            _ => (ports.quorum.addr(), ports.election.addr()),
        };
        format!("server.{}={quorum}:{}\n", i + 1, election.port())
    };
    ports.iter().enumerate().map(line).collect()
}

/// Writes server `i`'s configuration and number and returns the configuration's path.
pub(super) fn configure(
    options: &ZkOptions,
    certs: Option<&Certs>,
    dir: &Path,
    i: usize,
    members: &str,
    ports: &Ports,
) -> PathBuf {
    let data = dir.join(format!("s{i}"));
    fs::create_dir_all(&data).expect("the data folder");
    fs::write(data.join("myid"), (i + 1).to_string()).expect("the server's number");
    let tick = options.tick.as_millis().max(1);
    // In ticks, but a busy machine is slow in seconds: 20 s to join, 2 s to stay in touch.
    let (init, sync) = ((20_000 / tick).max(10), (2_000 / tick).max(5));
    let mut text = format!(
        "tickTime={tick}\ninitLimit={init}\nsyncLimit={sync}\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\n\
         maxClientCnxns={}\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{members}",
        data.display(),
        ports.client.addr().port(),
        options.max_client_cnxns,
    );
    if let Some(certs) = certs {
        let store = dir.join(format!("certs/s{i}.pem"));
        let read = |path: &Path| fs::read_to_string(path).expect("a PEM file");
        fs::write(&store, read(&certs.server.key) + &read(&certs.server.cert)).expect("the key store");
        // The type is told by hand: ZooKeeper guesses it from the name's ending, and the authority's is `.crt`.
        write!(
            text,
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPortAddress=127.0.0.1\nsecureClientPort={}\n\
             ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
             ssl.clientAuth={}\n",
            ports.secure.addr().port(),
            store.display(),
            certs.ca.display(),
            if options.tls == Tls::Mutual { "need" } else { "none" },
        )
        .expect("writing to a string");
    }
    for line in &options.config {
        text.push_str(line);
        text.push('\n');
    }
    let path = dir.join(format!("s{i}.cfg"));
    fs::write(&path, text).expect("the configuration");
    path
}

pub(super) fn arguments(options: &ZkOptions, class_path: &str, config: PathBuf) -> Vec<OsString> {
    // A small heap and the quick compiler alone: up in half a second. No perf data: a killed JVM would leave its file
    // behind. Transaction logs grow by 1 MB at a time instead of 64.
    let mut args: Vec<OsString> = [
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
    ]
    .into_iter()
    .chain(["-Djava.net.preferIPv4Stack=true", "-Dzookeeper.preAllocSize=1024"])
    // A vote that got lost is sent again after a pause that doubles up to a minute; an election must not take that long.
    .chain(["-Dzookeeper.fastleader.maxNotificationInterval=1000"])
    .map(OsString::from)
    .collect();
    args.extend(
        options
            .properties
            .iter()
            .map(|(name, value)| format!("-D{name}={value}").into()),
    );
    args.extend(["-cp", class_path, "org.apache.zookeeper.server.quorum.QuorumPeerMain"].map(OsString::from));
    args.push(config.into());
    args
}
