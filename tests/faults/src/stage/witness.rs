//! Leases of the bare client, and what it sees of the elections' entries: evidence of what the store itself does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coord_api::margin;
use etcd_client::{Client, EventType, LeaseGrantOptions, PutOptions, WatchOptions};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Cluster, Scribe};
use crate::client::Store;
use crate::history::What;

/// More than two of the waves in which etcd revokes late, sixteen leases each.
const LEASES: usize = 40;
const PREFIX: &str = "/witness/";
const CALL: Duration = Duration::from_secs(1);

/// Watches on until it is closed. On ZooKeeper there is none: no fault of its sessions is known that would have to be told
/// from one of ours, so nothing is excused there.
pub(crate) struct Witness {
    tasks: JoinSet<()>,
    leases: Leases,
    client: Option<Client>,
}

/// Until when each lease is proven, and its number.
type Leases = Arc<Mutex<BTreeMap<String, (i64, u64)>>>;

impl Witness {
    pub(crate) async fn start(
        cluster: &Cluster,
        scribe: &Scribe,
        ttl: Duration,
    ) -> Result<Witness, etcd_client::Error> {
        let mut witness = Witness {
            tasks: JoinSet::new(),
            leases: Leases::default(),
            client: None,
        };
        if cluster.store() == Store::Etcd {
            let client = Client::connect(cluster.addrs(), None).await?;
            let leases = witness.leases.clone();
            witness.tasks.spawn(watch(client.clone(), scribe.clone(), leases));
            for number in 0..LEASES {
                let leases = witness.leases.clone();
                let key = format!("{PREFIX}{number}");
                witness
                    .tasks
                    .spawn(keep(client.clone(), scribe.clone(), leases, key, ttl));
            }
            witness.client = Some(client);
        }
        Ok(witness)
    }

    pub(crate) async fn close(mut self) {
        self.tasks.shutdown().await;
        let leases = std::mem::take(&mut *self.leases.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(client) = self.client {
            for (lease, _) in leases.into_values() {
                let _ = timeout(CALL, client.lease_client().revoke(lease)).await;
            }
        }
    }
}

/// Tells of each of our keys that goes before its lease's proven end, and of each entry of an election that goes.
async fn watch(client: Client, scribe: Scribe, leases: Leases) {
    loop {
        let options = || Some(WatchOptions::new().with_prefix().with_prev_key());
        let mut streams = vec![];
        for prefix in [PREFIX, "/elections/"] {
            match timeout(CALL, client.watch_client().watch(prefix, options())).await {
                Ok(Ok(stream)) => streams.push(stream),
                _ => break,
            }
        }
        if streams.len() == 2 {
            let (elections, own) = (streams.pop(), streams.pop());
            let follow = streams_of(elections).chain(streams_of(own));
            let mut following = JoinSet::new();
            for mut stream in follow {
                let (scribe, leases) = (scribe.clone(), leases.clone());
                following.spawn(async move {
                    while let Ok(Some(answer)) = stream.message().await {
                        for event in answer.events() {
                            if event.event_type() == EventType::Delete {
                                gone(event, &scribe, &leases);
                            }
                        }
                    }
                });
            }
            following.join_next().await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

fn streams_of(stream: Option<etcd_client::WatchStream>) -> impl Iterator<Item = etcd_client::WatchStream> {
    stream.into_iter()
}

fn gone(event: &etcd_client::Event, scribe: &Scribe, leases: &Leases) {
    let Some(before) = event.prev_kv() else { return };
    let key = String::from_utf8_lossy(before.key()).into_owned();
    if !key.starts_with(PREFIX) {
        let token = before.create_revision().unsigned_abs();
        scribe.say("witness", What::Vanished { token });
        return;
    }
    let ended = leases.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    if let Some((lease, until)) = ended
        && lease == before.lease()
        && scribe.now() < until
    {
        let lease = lease.unsigned_abs();
        scribe.say("witness", What::EndedEarly { lease, until });
    }
}

/// A lease with one key, renewed with proof: a write after the keep-alive's answer, in the same term.
async fn keep(client: Client, scribe: Scribe, leases: Leases, key: String, ttl: Duration) {
    let seconds = ttl.as_secs().cast_signed();
    loop {
        let granted = timeout(CALL, client.lease_client().grant(seconds, None::<LeaseGrantOptions>)).await;
        let Ok(Ok(granted)) = granted else {
            sleep(Duration::from_millis(300)).await;
            continue;
        };
        let (lease, ttl) = (granted.id(), Duration::from_secs(granted.ttl().unsigned_abs()));
        let options = PutOptions::new().with_lease(lease);
        let put = timeout(CALL, client.kv_client().put(key.as_str(), "", Some(options))).await;
        let mut until = 0;
        if let Ok(Ok(_)) = put {
            leases
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key.clone(), (lease, until));
        }
        loop {
            let sent = scribe.now();
            match timeout(CALL, renew(&client, lease)).await {
                Ok(Ok(true)) => {
                    let proven = ttl.saturating_sub(margin(ttl));
                    until = sent + u64::try_from(proven.as_nanos()).unwrap_or_default();
                    let mut leases = leases.lock().unwrap_or_else(PoisonError::into_inner);
                    match leases.get_mut(&key) {
                        Some(known) => known.1 = until,
                        None => break,
                    }
                }
                _ if scribe.now() > until => break,
                _ => {}
            }
            sleep(ttl / 4).await;
        }
        let _ = timeout(CALL, client.lease_client().revoke(lease)).await;
    }
}

/// Whether the lease surely lives for a ttl from the sending on.
async fn renew(client: &Client, lease: i64) -> Result<bool, etcd_client::Error> {
    let (mut keeper, mut answers) = client.lease_client().keep_alive(lease).await?;
    keeper.keep_alive().await?;
    let Some(answer) = answers.message().await? else {
        return Ok(false);
    };
    let written = client.kv_client().delete(format!("{PREFIX}nothing"), None).await?;
    let term = |header: Option<&etcd_client::ResponseHeader>| header.map(etcd_client::ResponseHeader::raft_term);
    Ok(answer.ttl() > 0 && term(answer.header()).is_some() && term(answer.header()) == term(written.header()))
}
