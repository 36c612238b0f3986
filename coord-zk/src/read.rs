use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use coord_api::{Entry, Key, LeaseId, Result, Version};
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::{Client, Error as ZkError, MultiReadResult, Stat};

use crate::call::Call;
use crate::conn::commit_check;
use crate::envelope;
use crate::faults;
use crate::inner::Inner;
use crate::names;

/// How many values one request asks for, and how many such requests are on their way for one caller.
const PER_REQUEST: usize = 32;
const REQUESTS: usize = 4;

/// `ephemeralOwner` of nodes that are not ephemeral although it is not zero: containers, and those with a ttl.
const CONTAINER: i64 = i64::MIN;
const TTL_MASK: u64 = 0xff << 56;

impl Inner {
    pub(crate) async fn get(&self, call: &Call, key: &Key) -> Result<Option<Entry>> {
        let answer = self
            .read(|client| {
                let key = key.clone();
                async move { client.get_data(key.as_str()).await }
            })
            .await;
        found(call, key, answer)
    }

    pub(crate) async fn get_latest(&self, call: &Call, key: &Key) -> Result<Option<Entry>> {
        let answer = self
            .read(|client| {
                let key = key.clone();
                async move {
                    let barrier = commit_check(&client);
                    let get = client.get_data(key.as_str());
                    match futures::join!(barrier, get) {
                        (Ok(()), answer) => answer,
                        (Err(barrier), _) => Err(barrier.into()),
                    }
                }
            })
            .await;
        found(call, key, answer)
    }

    pub(crate) async fn children(&self, call: &Call, key: &Key) -> Result<Vec<Entry>> {
        let names = self
            .read(|client| {
                let key = key.clone();
                async move { client.list_children(key.as_str()).await }
            })
            .await;
        let keys = match names {
            Ok(names) => names::visible_children(key, self.config.chroot() == "/", names),
            Err(ZkError::NoNode) => return Ok(Vec::new()),
            Err(error) => return Err(call.refused(&error)),
        };
        let chunks: Vec<Vec<Key>> = keys.chunks(PER_REQUEST).map(<[Key]>::to_vec).collect();
        let entries: Vec<Vec<Entry>> = futures::stream::iter(chunks)
            .map(|chunk| self.get_all(call, chunk))
            .buffered(REQUESTS)
            .try_collect()
            .await?;
        Ok(entries.into_iter().flatten().collect())
    }

    /// Those of the keys that are there.
    pub(crate) async fn get_all(&self, call: &Call, keys: Vec<Key>) -> Result<Vec<Entry>> {
        let keys: Arc<[Key]> = keys.into();
        let answer = self
            .read(|client| {
                let keys = keys.clone();
                async move {
                    let mut reader = client.new_multi_reader();
                    for key in keys.iter() {
                        reader.add_get_data(key.as_str())?;
                    }
                    reader.commit().await
                }
            })
            .await
            .map_err(|error| call.refused(&error))?;
        let mut entries = Vec::with_capacity(keys.len());
        for (key, result) in keys.iter().zip(answer) {
            match result {
                MultiReadResult::Data { data, stat } => entries.push(entry(key, data, &stat)),
                MultiReadResult::Error { err: ZkError::NoNode } => {}
                MultiReadResult::Error { err } => return Err(call.refused(&err)),
                other => return Err(call.refused(&ZkError::UnexpectedError(format!("answer to a read: {other:?}")))),
            }
        }
        Ok(entries)
    }

    /// Reads on the shared connection, behind a barrier if this coordinator wrote on another session since the last one.
    /// The barrier is a transaction: ZooKeeper's `sync` is none on a connection to the leader, where it waits for
    /// nothing, although a follower may have answered a write that the leader has yet to apply to its own tree. Reads are
    /// repeated when the connection is lost; only what the server says itself comes back as an error.
    pub(crate) async fn read<T, F, Fut>(&self, make: F) -> Result<T, ZkError>
    where
        T: Send + 'static,
        F: Fn(Arc<Client>) -> Fut,
        Fut: Future<Output = Result<T, ZkError>> + Send + 'static,
    {
        loop {
            let conn = self.shared.conn().await;
            let behind = self.fresh.behind();
            let answer = conn
                .read(|client| {
                    let read = make(client.clone());
                    async move {
                        match behind {
                            None => read.await,
                            Some(_) => {
                                // Both leave at once, in this order.
                                match futures::join!(commit_check(&client), read) {
                                    (Ok(()), answer) => answer,
                                    (Err(barrier), _) => Err(barrier.into()),
                                }
                            }
                        }
                    }
                })
                .await;
            match answer {
                Ok(Err(error)) if faults::is_ambiguous(&error) => self.again().await,
                Err(_) => self.again().await,
                Ok(answer) => {
                    if let Some(behind) = behind {
                        self.fresh.caught_up(behind);
                    }
                    return answer;
                }
            }
        }
    }
}

fn found(call: &Call, key: &Key, answer: Result<(Vec<u8>, Stat), ZkError>) -> Result<Option<Entry>> {
    match answer {
        Ok((stored, stat)) => Ok(Some(entry(key, stored, &stat))),
        Err(ZkError::NoNode) => Ok(None),
        Err(error) => Err(call.refused(&error)),
    }
}

/// A znode as an entry.
pub(crate) fn entry(key: &Key, stored: Vec<u8>, stat: &Stat) -> Entry {
    entry_of(key, envelope::open(stored).value, stat)
}

pub(crate) fn entry_of(key: &Key, value: Bytes, stat: &Stat) -> Entry {
    Entry {
        key: key.clone(),
        value,
        version: version(stat.czxid, stat.version),
        created: stat.czxid as u64,
        lease: lease_of(stat.ephemeral_owner),
    }
}

/// `version` starts at 0 again after delete-and-recreate; together with the czxid it never repeats.
pub(crate) fn version(czxid: i64, version: i32) -> Version {
    Version::new(czxid as u64, version as u32 as u64)
}

/// The two numbers in a version; `None` if no ZooKeeper ever gave them.
pub(crate) fn version_parts(version: Version) -> Option<(i64, i32)> {
    let (czxid, write) = version.parts();
    Some((i64::try_from(czxid).ok()?, u32::try_from(write).ok()? as i32))
}

fn lease_of(owner: i64) -> Option<LeaseId> {
    let owned = owner != 0 && owner != CONTAINER && (owner as u64) & TTL_MASK != TTL_MASK;
    owned.then_some(LeaseId(owner as u64))
}
