//! The same work on the registers with nothing but the store's own client library: what it sees is the store's doing.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, Txn, TxnOp, TxnOpResponse};
use tokio::sync::Mutex;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client as ZkClient, CreateMode, Error as ZkError, Stat};

use super::registers::Performer;
use super::{BLIND, CALL_DEADLINE, CHAINED, ClientConfig, QUEUE, Store};
use crate::history::{Held, Op, Outcome};

/// A client of the store's own library.
pub(super) enum Bare {
    Etcd(Box<etcd_client::Client>),
    ZooKeeper {
        servers: String,
        /// Made anew when its session has ended.
        client: Mutex<Option<ZkClient>>,
    },
}

impl Bare {
    pub(super) async fn open(config: &ClientConfig) -> Result<Bare, Box<dyn Error>> {
        match config.store {
            Store::Etcd => Ok(Bare::Etcd(Box::new(
                etcd_client::Client::connect(&config.servers, None).await?,
            ))),
            Store::ZooKeeper => loop {
                let servers = config.servers.join(",");
                match begun(&servers).await {
                    Ok(client) => {
                        let client = Mutex::new(Some(client));
                        return Ok(Bare::ZooKeeper { servers, client });
                    }
                    Err(error) => {
                        eprintln!("bare client: {error}");
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                }
            },
        }
    }
}

async fn begun(servers: &str) -> Result<ZkClient, ZkError> {
    let client = connect(servers).await?;
    for path in [CHAINED, BLIND, QUEUE] {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.mkdir(&format!("/bare{path}"), &options).await?;
    }
    Ok(client)
}

async fn connect(servers: &str) -> Result<ZkClient, ZkError> {
    ZkClient::connector()
        .with_session_timeout(Duration::from_secs(3))
        .with_fail_eagerly()
        .connect(servers)
        .await
}

#[async_trait]
impl Performer for Bare {
    async fn perform(&self, op: &Op) -> Outcome {
        let doing = async {
            match self {
                Bare::Etcd(client) => on_etcd(client, op).await.map_err(|error| error.to_string()),
                Bare::ZooKeeper { .. } => on_zookeeper(self, op).await,
            }
        };
        match timeout(CALL_DEADLINE, doing).await {
            Ok(Ok(outcome)) => outcome,
            // Whatever the library says: it does not tell reliably what was sent.
            Ok(Err(why)) => ambiguous(op, why),
            Err(_) => ambiguous(op, "no answer".into()),
        }
    }

    fn can_abandon(&self) -> bool {
        false
    }

    fn can_delete(&self) -> bool {
        // ZooKeeper's versions begin again with a new entry: only our driver can tell the two apart.
        matches!(self, Bare::Etcd(_))
    }
}

fn ambiguous(op: &Op, why: String) -> Outcome {
    match op {
        Op::GetLatest { .. } | Op::Get { .. } => Outcome::NotSent { why },
        _ => Outcome::Unknown { why },
    }
}

async fn on_etcd(client: &etcd_client::Client, op: &Op) -> Result<Outcome, etcd_client::Error> {
    let mut store = client.kv_client();
    let key = match op {
        Op::Sequential { key } => &format!("{key}/{:016x}", rand::random::<u64>()),
        _ => op.key(),
    };
    let revision = |version: &Option<String>| version.as_ref().and_then(|version| version.parse::<i64>().ok());
    let (condition, doing) = match op {
        Op::GetLatest { .. } | Op::Get { .. } => {
            let found = store.get(key, None::<GetOptions>).await?;
            return Ok(Outcome::Found {
                held: found.kvs().first().map(of_etcd),
            });
        }
        Op::Create { value, .. } => (
            Compare::create_revision(key, CompareOp::Equal, 0),
            TxnOp::put(key, value.as_str(), None),
        ),
        Op::Update { value, expected, .. } => {
            (if_there(key, revision(expected)), TxnOp::put(key, value.as_str(), None))
        }
        Op::Delete { expected, .. } => (if_there(key, revision(expected)), TxnOp::delete(key, None)),
        Op::Sequential { .. } => (
            Compare::create_revision(key, CompareOp::Equal, 0),
            TxnOp::put(key, "", None),
        ),
        Op::Abandon { .. } => {
            return Ok(Outcome::Refused {
                why: "not without our driver".into(),
            });
        }
    };
    let transaction = Txn::new()
        .when([condition])
        .and_then([doing, TxnOp::get(key, None)])
        .or_else([TxnOp::get(key, None)]);
    let answer = store.txn(transaction).await?;
    let responses = answer.op_responses();
    let now = responses.iter().find_map(|response| match response {
        TxnOpResponse::Get(get) => get.kvs().first().map(of_etcd),
        _ => None,
    });
    Ok(match (answer.succeeded(), op, now) {
        (true, Op::Delete { .. }, _) => Outcome::Done { made: None },
        (true, _, Some(held)) => Outcome::Done {
            made: Some((held.version, held.created)),
        },
        (true, _, None) => Outcome::Unknown {
            why: "written, and not there".into(),
        },
        (false, Op::Create { .. }, Some(held)) => Outcome::Taken { held },
        (false, _, Some(held)) => Outcome::Mismatch {
            version: Some(held.version),
        },
        (false, _, None) => Outcome::Missing,
    })
}

fn if_there(key: &str, revision: Option<i64>) -> Compare {
    match revision {
        Some(revision) => Compare::mod_revision(key, CompareOp::Equal, revision),
        None => Compare::create_revision(key, CompareOp::Greater, 0),
    }
}

pub(super) fn of_etcd(found: &KeyValue) -> Held {
    Held {
        value: String::from_utf8_lossy(found.value()).into_owned(),
        version: found.mod_revision().to_string(),
        created: found.create_revision().unsigned_abs(),
    }
}

/// The client of ZooKeeper, made anew when its session has ended.
pub(super) async fn current(bare: &Bare) -> Result<ZkClient, String> {
    let Bare::ZooKeeper { servers, client } = bare else {
        return Err("no client of ZooKeeper".into());
    };
    let mut client = client.lock().await;
    if client.as_ref().is_none_or(|client| client.state().is_terminated()) {
        *client = Some(connect(servers).await.map_err(|error| error.to_string())?);
    }
    client.clone().ok_or_else(|| "no client".into())
}

async fn on_zookeeper(bare: &Bare, op: &Op) -> Result<Outcome, String> {
    let now = current(bare).await?;
    match asked(&now, op).await {
        Ok(outcome) => Ok(outcome),
        Err(ZkError::NoNode) => Ok(Outcome::Missing),
        Err(ZkError::BadVersion) => Ok(Outcome::Mismatch { version: None }),
        Err(error) => Err(error.to_string()),
    }
}

async fn asked(client: &ZkClient, op: &Op) -> Result<Outcome, ZkError> {
    let key = op.key();
    match op {
        Op::GetLatest { .. } | Op::Get { .. } => match latest(client, key).await {
            Ok(held) => Ok(Outcome::Found { held: Some(held) }),
            Err(ZkError::NoNode) => Ok(Outcome::Found { held: None }),
            Err(error) => Err(error),
        },
        Op::Create { value, .. } => {
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            match client.create(key, value.as_bytes(), &options).await {
                Ok((stat, _)) => Ok(made(&stat)),
                Err(ZkError::NodeExists) => Ok(Outcome::Taken {
                    held: latest(client, key).await?,
                }),
                Err(error) => Err(error),
            }
        }
        Op::Update { value, expected, .. } => {
            // `czxid.version`; without deletes there is one czxid.
            let expected = expected
                .as_ref()
                .and_then(|version| version.split('.').nth(1)?.parse().ok());
            Ok(made(&client.set_data(key, value.as_bytes(), expected).await?))
        }
        Op::Sequential { key } => {
            let options = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
            let (stat, _) = client.create(&format!("{key}/n"), b"", &options).await?;
            Ok(made(&stat))
        }
        Op::Delete { .. } | Op::Abandon { .. } => Ok(Outcome::Refused {
            why: "not without our driver".into(),
        }),
    }
}

/// After a write that went through the quorum.
async fn latest(client: &ZkClient, key: &str) -> Result<Held, ZkError> {
    let mut writer = client.new_multi_writer();
    writer.add_check_version("/", -1)?;
    writer.commit().await?;
    let (value, stat) = client.get_data(key).await?;
    Ok(of_zookeeper(&value, &stat))
}

pub(super) fn of_zookeeper(value: &[u8], stat: &Stat) -> Held {
    Held {
        value: String::from_utf8_lossy(value).into_owned(),
        version: version(stat),
        created: stat.czxid.unsigned_abs(),
    }
}

fn made(stat: &Stat) -> Outcome {
    Outcome::Done {
        made: Some((version(stat), stat.czxid.unsigned_abs())),
    }
}

fn version(stat: &Stat) -> String {
    format!("{}.{}", stat.czxid, stat.version)
}
