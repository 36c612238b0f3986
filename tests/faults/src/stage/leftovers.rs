//! What is left at a store, by the store's own tools.

use std::time::Duration;

use coord_harness::{EtcdCluster, ZkEnsemble};
use etcd_client::{Client, GetOptions, LeaseTimeToLiveOptions};
use tokio::time::{Instant, sleep};

use super::Cluster;

/// A killed client's leases end by themselves: ttl, slack, and on etcd another ttl after a change of leader.
const PATIENCE: Duration = Duration::from_secs(15);
/// The driver's records of creates lie under leases of its own with this ttl, which end by themselves.
const RECORDS: u64 = 120;

/// Waits until nothing is left, and says what is if that takes too long.
pub async fn leftovers(cluster: &Cluster) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = left_now(cluster).await;
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// What is there at this moment.
pub async fn left_now(cluster: &Cluster) -> Vec<String> {
    match cluster {
        Cluster::Etcd(etcd) => of_etcd(etcd).await.unwrap_or_else(|error| vec![error.to_string()]),
        Cluster::ZooKeeper(zookeeper) => of_zookeeper(zookeeper).await,
    }
}

async fn of_etcd(etcd: &EtcdCluster) -> Result<Vec<String>, etcd_client::Error> {
    let mut left = vec![];
    let client = Client::connect(etcd.endpoints(), None).await?;
    let all = GetOptions::new().with_prefix().with_keys_only();
    for entry in client.kv_client().get("/", Some(all)).await?.kvs() {
        let key = String::from_utf8_lossy(entry.key());
        if entry.lease() != 0 && !key.starts_with("/.coord/") {
            left.push(format!("entry {key} under lease {:x}", entry.lease()));
        }
    }
    for lease in client.lease_client().leases().await?.leases() {
        let options = LeaseTimeToLiveOptions::new();
        let told = client.lease_client().time_to_live(lease.id(), Some(options)).await?;
        if told.ttl() > 0 && told.granted_ttl().unsigned_abs() != RECORDS {
            left.push(format!("lease {:x} of {} s", lease.id(), told.granted_ttl()));
        }
    }
    for i in 0..etcd.nodes().len() {
        let watches = etcd.metric(i, "etcd_debugging_mvcc_watcher_total").await;
        if watches != Some(0.0) {
            left.push(format!("{watches:?} watches at m{i}"));
        }
    }
    Ok(left)
}

async fn of_zookeeper(zookeeper: &ZkEnsemble) -> Vec<String> {
    let mut left = vec![];
    let mut led = false;
    for i in 0..zookeeper.nodes().len() {
        let Ok(state) = zookeeper.four_letter(i, "mntr").await else {
            left.push(format!("s{i} does not answer"));
            continue;
        };
        // Only the leader knows: a follower that came back while sessions were closed goes on counting them.
        let leads = state.contains("zk_server_state\tleader") || state.contains("zk_server_state\tstandalone");
        led |= leads;
        let sessions = leads.then_some("zk_global_sessions");
        for what in ["zk_ephemerals_count", "zk_watch_count"].into_iter().chain(sessions) {
            let count = state
                .lines()
                .find_map(|line| line.strip_prefix(what)?.trim().parse::<f64>().ok());
            if count != Some(0.0) {
                left.push(format!("{what} {count:?} at s{i}"));
            }
        }
    }
    if !led {
        left.push("no leader, who alone knows of all sessions".into());
    }
    left
}
