//! Guard nodes: each create of a fixed name moves the guard of its key, so that a conditional write can tell the
//! incarnation that it expects from a later one with the same version number.

use coord_api::Key;
use zookeeper_client::{Client, CreateMode, Error as ZkError, MultiWriteError, MultiWriteResult};

use crate::ZkConfig;
use crate::names::OWN;
use crate::session;

const GUARDS: u64 = 1024;

/// The guard of a key. The hash must never change: two versions of this driver have to agree on it.
pub(crate) fn path(key: &Key) -> String {
    format!("{OWN}/guards/{}", number(key))
}

pub(crate) fn number(key: &Key) -> u64 {
    fnv1a(key.as_str().as_bytes()) % GUARDS
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What a guarded create tells: the guard moved in the same transaction, so its mzxid is the key's czxid. (The stat of
/// the created node itself is not filled in before ZooKeeper 3.8.2.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) czxid: i64,
    pub(crate) version: i32,
}

/// Hands a guarded create to the session; the request has left when this returns.
pub(crate) fn create<'a>(
    client: &'a Client,
    config: &ZkConfig,
    key: &Key,
    stored: &[u8],
    mode: CreateMode,
) -> impl Future<Output = Result<Moved, MultiWriteError>> + Send + use<'a> {
    let mut writer = client.new_multi_writer();
    let added = writer
        .add_create(key.as_str(), stored, &config.node(mode))
        .and_then(|()| writer.add_set_data(&path(key), b"", None));
    let commit = added.map(|()| writer.commit());
    async move {
        let results = commit
            .map_err(|source| MultiWriteError::OperationFailed { index: 0, source })?
            .await?;
        match results.get(1) {
            Some(MultiWriteResult::SetData { stat }) => Ok(Moved {
                czxid: stat.mzxid,
                version: stat.version,
            }),
            other => Err(ZkError::UnexpectedError(format!("answer to a guarded create: {other:?}")).into()),
        }
    }
}

/// Makes the guard of a key, and what is above it.
pub(crate) async fn make(client: &Client, config: &ZkConfig, key: &Key) -> Result<(), ZkError> {
    let guards = format!("{OWN}/guards");
    let node = config.node(CreateMode::Persistent);
    if let Err(ZkError::NoNode) = made(client.create(OWN, b"", &node).await) {
        session::make_root(client, config).await?;
        made(client.create(OWN, b"", &node).await)?;
    }
    made(client.create(&guards, b"", &node).await)?;
    made(client.create(&path(key), b"", &node).await)
}

fn made<T>(result: Result<T, ZkError>) -> Result<(), ZkError> {
    match result {
        Ok(_) | Err(ZkError::NodeExists) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_of_a_key_never_changes() {
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(path(&Key::new("/a").unwrap()), path(&Key::new("/a").unwrap()));
        assert_eq!(path(&Key::new("/jobs/nightly").unwrap()), "/.coord/guards/348");
    }
}
