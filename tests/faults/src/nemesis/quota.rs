//! A store that is full, and one that has room again.

use std::time::Duration;

use coord_harness::EtcdCluster;
use etcd_client::{Client, DeleteOptions};
use tokio::time::timeout;

const FILLING: &str = "/filling/";
const PIECE: usize = 1024 * 1024;
const CALL: Duration = Duration::from_secs(5);

/// Writes until the store refuses.
pub(super) async fn fill(etcd: &EtcdCluster) -> Result<(), String> {
    let text = |error: etcd_client::Error| error.to_string();
    let client = Client::connect(etcd.endpoints(), None).await.map_err(text)?;
    let piece = vec![b'x'; PIECE];
    for number in 0..200 {
        let mut store = client.kv_client();
        let put = store.put(format!("{FILLING}{number}"), piece.clone(), None);
        match timeout(CALL, put).await {
            Ok(Err(error)) if error.to_string().contains("space exceeded") => return Ok(()),
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(_)) => {}
            Err(_) => return Err("no answer while filling".into()),
        }
    }
    Err("it is never full".into())
}

/// What an operator does: delete, compact, defragment, clear the alarm.
pub(super) async fn clear(etcd: &EtcdCluster) -> Result<(), String> {
    let text = |error: etcd_client::Error| error.to_string();
    let client = Client::connect(etcd.endpoints(), None).await.map_err(text)?;
    let all = DeleteOptions::new().with_prefix();
    let deleted = timeout(CALL, client.kv_client().delete(FILLING, Some(all))).await;
    deleted.map_err(|_| "no answer while deleting")?.map_err(text)?;
    etcd.compact().await?;
    etcd.try_etcdctl(&["alarm", "disarm"]).await?;
    match alarms(etcd).await? {
        None => Ok(()),
        Some(alarms) => Err(format!("still there: {alarms}")),
    }
}

/// The same, where there is an alarm.
pub(super) async fn clear_if_full(etcd: &EtcdCluster) -> Result<(), String> {
    match alarms(etcd).await? {
        None => Ok(()),
        Some(_) => clear(etcd).await,
    }
}

async fn alarms(etcd: &EtcdCluster) -> Result<Option<String>, String> {
    let alarms = etcd.try_etcdctl(&["alarm", "list"]).await?;
    Ok(Some(alarms.trim().to_owned()).filter(|alarms| !alarms.is_empty()))
}
