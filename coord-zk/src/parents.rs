use coord_api::{ErrorKind, Key, Result};
use zookeeper_client::{CreateMode, Error as ZkError};

use crate::call::Call;
use crate::conn::Conn;
use crate::faults;
use crate::guard;
use crate::inner::Inner;
use crate::session;

/// What became of an attempt to make what a create lacks.
pub(crate) enum Made {
    Done,
    /// The connection was lost: begin anew.
    Lost,
}

impl Inner {
    /// Makes an entry's missing parent, and that one's if need be. Parents are empty, and as any fixed name they move
    /// their guard; each in a transaction of its own, because what is created in one shares its czxid.
    pub(crate) async fn make_parent(&self, call: &Call, conn: &Conn, key: &Key) -> Result<Made> {
        let Some(parent) = key.parent().filter(|parent| !parent.is_root()) else {
            return self.make_root(call, conn).await;
        };
        let mut missing = vec![parent];
        while let Some(key) = missing.last().cloned() {
            let config = self.config.clone();
            let answer = conn
                .read({
                    let key = key.clone();
                    |client| async move { guard::create(&client, &config, &key, b"", CreateMode::Persistent).await }
                })
                .await;
            let Ok(answer) = answer else { return Ok(Made::Lost) };
            let error = match answer {
                Ok(_) => {
                    missing.pop();
                    continue;
                }
                Err(error) => error,
            };
            let step = match faults::failed_operation(&error) {
                Some((0, ZkError::NodeExists)) => {
                    missing.pop();
                    continue;
                }
                Some((0, ZkError::NoNode)) => match key.parent().filter(|parent| !parent.is_root()) {
                    Some(parent) => {
                        missing.push(parent);
                        continue;
                    }
                    None => self.make_root(call, conn).await?,
                },
                Some((0, ZkError::NoChildrenForEphemerals)) => return Err(self.ephemeral_parent(call, &key)),
                Some((1, ZkError::NoNode)) => self.make_guard(call, conn, &key).await?,
                _ => self.given_up(call, &error.into())?,
            };
            if let Made::Lost = step {
                return Ok(Made::Lost);
            }
        }
        Ok(Made::Done)
    }

    pub(crate) fn ephemeral_parent(&self, call: &Call, key: &Key) -> coord_api::Error {
        call.definite(ErrorKind::EphemeralParent(key.parent().unwrap_or_else(Key::root)))
    }

    pub(crate) async fn make_guard(&self, call: &Call, conn: &Conn, key: &Key) -> Result<Made> {
        let (config, key) = (self.config.clone(), key.clone());
        self.made(
            call,
            conn.read(|client| async move { guard::make(&client, &config, &key).await })
                .await,
        )
    }

    async fn make_root(&self, call: &Call, conn: &Conn) -> Result<Made> {
        let config = self.config.clone();
        self.made(
            call,
            conn.read(|client| async move { session::make_root(&client, &config).await })
                .await,
        )
    }

    fn made(&self, call: &Call, answer: Result<Result<(), ZkError>, crate::conn::Over>) -> Result<Made> {
        match answer {
            Err(_) => Ok(Made::Lost),
            // Somebody deletes what we make: begin anew, until the deadline.
            Ok(Ok(()) | Err(ZkError::NoNode)) => Ok(Made::Done),
            Ok(Err(error)) => self.given_up(call, &error),
        }
    }

    fn given_up(&self, call: &Call, error: &ZkError) -> Result<Made> {
        if faults::is_ambiguous(error) {
            return Ok(Made::Lost);
        }
        Err(call.refused(error))
    }
}
