use coordkit::{Config, Error, ErrorKind, Scheme, margin};

use super::report::{Problem, Report};

/// What is wrong, and what to change.
pub(super) fn problems(config: &Config, report: &Report, failure: Option<&Error>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |fatal: bool, what: String, change: &str| {
        problems.push(Problem {
            fatal,
            what,
            change: change.to_owned(),
        });
    };
    if let Some(error) = failure {
        add(true, error.to_string(), advice(error));
    }
    for endpoint in &report.endpoints {
        if let (Some(error), None) = (&endpoint.error, failure) {
            let what = format!("{} does not answer: {error}", endpoint.endpoint);
            add(
                false,
                what,
                "start it, or take it out of the URL; the others carry on without it",
            );
        }
    }
    if let Some(times) = &report.times {
        let (granted, asked) = (times.granted, config.session.ttl);
        if granted != asked {
            add(
                false,
                format!("the store granted {granted:?} instead of {asked:?}; all times follow what it granted"),
                match config.store.scheme {
                    Scheme::Zk | Scheme::Zks => "ask for 2 to 20 times the servers' tickTime, or change tickTime",
                    _ => "ask for whole seconds, and more than one and a half of etcd's election timeouts",
                },
            );
        }
        let needed = config.stop_within + margin(granted);
        if needed * 2 > granted {
            let what = format!("stop_within and the margin take {needed:?}, more than half of the granted {granted:?}");
            add(true, what, "raise session.ttl, or lower stop_within");
        }
        let deadline = granted / report.capabilities.renewals_per_ttl.max(2) / 2;
        if times.round_trip * 4 > deadline {
            let what = format!(
                "a round trip takes {:?}, and a renewal must be answered within {deadline:?}: leadership will be lost \
                 for no reason",
                times.round_trip
            );
            add(
                times.round_trip > deadline,
                what,
                "raise session.ttl, or come nearer to the store",
            );
        }
        if let Some(least) = times.shortest
            && least / 2 > config.zookeeper.tick
        {
            let what = format!(
                "the servers' tickTime is {:?}, zookeeper.tick says {:?}: entries end later than is told here",
                least / 2,
                config.zookeeper.tick
            );
            add(false, what, "set zookeeper.tick to the servers' tickTime");
        }
    }
    if matches!(config.store.scheme, Scheme::Zk | Scheme::Zks) && config.user.is_none() {
        let what = "without a user, whoever reaches ZooKeeper can change everything that is made".to_owned();
        add(
            false,
            what,
            "set user and password_file; what is made then belongs to that user alone",
        );
    }
    if !config.store.scheme.is_tls() && !config.store.is_loopback() {
        let what = "what travels to the store is not encrypted, and the servers are not authenticated".to_owned();
        let change = match config.store.scheme {
            Scheme::Etcd => "use etcds:// with tls.ca",
            _ => "use zks:// with tls.ca",
        };
        add(false, what, change);
    }
    if report.endpoints.len() == 2 {
        let what = "two servers fail as soon as one does".to_owned();
        add(false, what, "run three or five, and name all of them in the URL");
    }
    problems
}

fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Unauthenticated(_) => "check user, password and certificates",
        ErrorKind::PermissionDenied(_) => "have the operator grant read and write below the URL's prefix",
        ErrorKind::StoreFull(_) => "free space and clear the alarm (etcdctl alarm disarm)",
        ErrorKind::LimitReached(_) => {
            "raise the limit that is named; each lease on ZooKeeper is a connection (maxClientCnxns)"
        }
        _ if error.is_transient() => {
            "check that the store runs, that the URL is right, and that no firewall is between"
        }
        _ => "see the store's own log",
    }
}
