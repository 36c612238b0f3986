use std::sync::Arc;

use coord_api::{Create, CreateMode, Entry, ErrorKind, Key, Result};
use zookeeper_client::{CreateMode as ZkMode, Error as ZkError};

use crate::call::Call;
use crate::conn::Conn;
use crate::faults;
use crate::guard::{self, Moved};
use crate::inner::{Inner, Route};
use crate::known::Incarnation;
use crate::lease::{Lease, Place};
use crate::nonces::{Abandoned, Nonces};
use crate::read;
use crate::settle::Settled;
use crate::{envelope, names};

/// The digits that the server adds to a sequential name.
const SEQUENCE_DIGITS: usize = 10;

impl Inner {
    pub(crate) async fn create(&self, call: &Call, create: &Create) -> Result<Entry> {
        let Some(id) = create.mode.lease() else {
            return self
                .create_fixed(call, &Route::Shared, create, ZkMode::Persistent)
                .await;
        };
        let lease = self.lease(call, id)?;
        let route = Route::Lease(lease.clone());
        let place = match create.mode {
            CreateMode::Sequential(_) => create.key.child(names::sequential_prefix(create.nonce)),
            _ => Ok(create.key.clone()),
        }
        .map_err(|invalid| call.definite(ErrorKind::InvalidKey(invalid)))?;
        let counted = self.carry(call, &lease, &place).await?;
        let made = match create.mode {
            CreateMode::Sequential(_) => self.create_sequential(call, &route, &lease, create, &place).await,
            _ => self.create_fixed(call, &route, create, ZkMode::Ephemeral).await,
        };
        match &made {
            Ok(entry) if entry.key != place => {
                lease.carries_now(&entry.key, self.path_bytes(&entry.key));
                counted.nothing_there();
            }
            Err(error) if !error.is_unknown() => {
                counted.nothing_there();
                // What another create of ours put there is counted for that one; what stands there now is not ours.
                if matches!(error.kind(), ErrorKind::AlreadyExists(entry) if entry.lease != Some(id)) {
                    lease.release(&place);
                }
            }
            _ => {}
        }
        made
    }

    async fn create_fixed(&self, call: &Call, route: &Route, create: &Create, mode: ZkMode) -> Result<Entry> {
        let stored: Arc<[u8]> = envelope::seal(Some(create.nonce), &create.value).into();
        // The answer to a copy was lost: where the guard stood before it left.
        let mut doubt: Option<i32> = None;
        loop {
            let conn = self.conn(call, route).await?;
            if let Some(before) = doubt {
                match self.settle_fixed(call, &conn, route, create, before).await? {
                    Settled::Made(entry) => return Ok(entry),
                    Settled::NotMade => doubt = None,
                    Settled::NotYet => continue,
                }
            }
            let Some(before) = self.guard(call, &conn, &create.key).await? else {
                continue;
            };
            let sent = Sending {
                config: self.config.clone(),
                nonces: self.nonces_of(route),
                fresh: route.lease().map(|_| self.fresh.clone()),
                key: create.key.clone(),
                nonce: create.nonce,
                stored: stored.clone(),
                mode,
            };
            let Ok(answer) = conn.write(call, |client| sent.go(client)).await else {
                continue;
            };
            let error = match answer {
                Ok(Ok(moved)) => {
                    call.settled();
                    return Ok(self.created(route, create, moved));
                }
                Err(Abandoned) => {
                    call.settled();
                    return Err(call.definite(ErrorKind::Abandoned));
                }
                Ok(Err(error)) => error,
            };
            let Some((index, source)) = faults::failed_operation(&error) else {
                let error = ZkError::from(error);
                if !faults::is_ambiguous(&error) {
                    call.settled();
                    return Err(call.refused(&error));
                }
                doubt = Some(before);
                self.again().await;
                continue;
            };
            call.settled();
            match (index, source) {
                (0, ZkError::NodeExists) => {
                    if let Some(entry) = self.holder(call, &conn, route, create).await? {
                        return Ok(entry);
                    }
                }
                (0, ZkError::NoNode) => {
                    self.make_parent(call, &conn, &create.key).await?;
                }
                (0, ZkError::NoChildrenForEphemerals) => return Err(self.ephemeral_parent(call, &create.key)),
                (1, ZkError::NoNode) => {
                    self.make_guard(call, &conn, &create.key).await?;
                }
                (_, error) => return Err(call.refused(error)),
            }
        }
    }

    /// Where the guard of the key stands, or has stood; once per guard it takes a read. `None`: begin anew.
    async fn guard(&self, call: &Call, conn: &Conn, key: &Key) -> Result<Option<i32>> {
        if let Some(known) = self.known.guard(key) {
            return Ok(Some(known));
        }
        let path = guard::path(key);
        let answer = conn
            .read(|client| async move { client.get_data(&path).await.map(|(_, stat)| stat.version) })
            .await;
        match answer {
            Ok(Ok(version)) => {
                self.known.saw_guard(key, version);
                return Ok(Some(version));
            }
            Ok(Err(ZkError::NoNode)) => {
                self.make_guard(call, conn, key).await?;
            }
            Ok(Err(error)) if !faults::is_ambiguous(&error) => return Err(call.refused(&error)),
            _ => self.again().await,
        }
        Ok(None)
    }

    /// Who holds the key: the entry if it is the one that this very create made, an error if it is another one's,
    /// `None` if it is free again.
    async fn holder(&self, call: &Call, conn: &Conn, route: &Route, create: &Create) -> Result<Option<Entry>> {
        let key = create.key.clone();
        let answer = conn
            .read(|client| async move { client.get_data(key.as_str()).await })
            .await;
        if route.lease().is_some() {
            // The caller learns of it now: later reads must not be older.
            self.fresh.moved_elsewhere();
        }
        match answer {
            Ok(Ok((stored, stat))) => {
                let opened = envelope::open(stored);
                let entry = read::entry_of(&create.key, opened.value, &stat);
                if opened.nonce == Some(create.nonce) {
                    return Ok(Some(entry));
                }
                Err(call.definite(ErrorKind::AlreadyExists(Box::new(entry))))
            }
            Ok(Err(ZkError::NoNode)) | Err(_) => Ok(None),
            Ok(Err(error)) if faults::is_ambiguous(&error) => Ok(None),
            Ok(Err(error)) => Err(call.refused(&error)),
        }
    }

    fn created(&self, route: &Route, create: &Create, moved: Moved) -> Entry {
        let known = Incarnation {
            czxid: moved.czxid,
            nonce: Some(create.nonce),
            guard: Some(moved.version),
        };
        self.known.made(&create.key, known);
        Entry {
            key: create.key.clone(),
            value: create.value.clone(),
            version: read::version(moved.czxid, 0),
            created: moved.czxid as u64,
            lease: route.lease().map(|lease| lease.id),
        }
    }

    /// A sequential name is another one each time, so a copy whose answer was lost is looked for. Where it is not found it
    /// may have been made and deleted: then this call does not make another one, only the next one with the same nonce.
    async fn create_sequential(
        &self,
        call: &Call,
        route: &Route,
        lease: &Lease,
        create: &Create,
        place: &Key,
    ) -> Result<Entry> {
        let path: Arc<str> = names::sequential_path(&create.key, create.nonce).into();
        let stored: Arc<[u8]> = envelope::seal(None, &create.value).into();
        let nonce = create.nonce;
        if lease.nonces.is_pending(nonce) {
            call.sent();
        }
        let mut sent_now = false;
        loop {
            let conn = self.conn(call, route).await?;
            if call.is_unsettled() {
                match self.find_after_barrier(call, &conn, create).await? {
                    None => continue,
                    Some(None) if sent_now => {
                        let gone = "the answer was lost, and there is no entry of it";
                        return Err(call.broken(ErrorKind::Unavailable(gone.into())));
                    }
                    Some(found) => {
                        call.settled();
                        lease.nonces.settled(nonce);
                        if let Some(entry) = found {
                            // The caller learns of it now: later reads must not be older.
                            self.fresh.moved_elsewhere();
                            return Ok(entry);
                        }
                    }
                }
            }
            lease.nonces.pending(nonce);
            let (nonces, fresh, config) = (self.nonces_of(route), self.fresh.clone(), self.config.clone());
            let (path, stored) = (path.clone(), stored.clone());
            let answer = conn
                .write(call, |client| async move {
                    let node = config.node(ZkMode::EphemeralSequential);
                    let sent = nonces.send(nonce, || client.create(&path, &stored, &node))?;
                    let answer = sent.await;
                    fresh.moved_elsewhere();
                    Ok::<_, Abandoned>(answer)
                })
                .await;
            let Ok(answer) = answer else { continue };
            let error = match answer {
                Ok(Ok((stat, sequence))) => {
                    call.settled();
                    lease.nonces.settled(nonce);
                    let name = format!("{}{sequence}", names::sequential_prefix(nonce));
                    let key = create
                        .key
                        .child(name)
                        .map_err(|invalid| call.definite(ErrorKind::InvalidKey(invalid)))?;
                    self.remember_sequential(&key, stat.czxid);
                    return Ok(read::entry_of(&key, create.value.clone(), &stat));
                }
                Err(Abandoned) => {
                    call.settled();
                    lease.nonces.settled(nonce);
                    return Err(call.definite(ErrorKind::Abandoned));
                }
                Ok(Err(error)) if faults::is_ambiguous(&error) => {
                    sent_now = true;
                    self.again().await;
                    continue;
                }
                Ok(Err(error)) => error,
            };
            call.settled();
            lease.nonces.settled(nonce);
            match error {
                ZkError::NoNode => {
                    self.make_parent(call, &conn, place).await?;
                }
                ZkError::NoChildrenForEphemerals => {
                    return Err(call.definite(ErrorKind::EphemeralParent(create.key.clone())));
                }
                error => return Err(call.refused(&error)),
            }
        }
    }

    pub(crate) fn remember_sequential(&self, key: &Key, czxid: i64) {
        let known = Incarnation {
            czxid,
            nonce: None,
            guard: None,
        };
        self.known.seen(key, known);
    }

    pub(crate) fn nonces_of(&self, route: &Route) -> Arc<Nonces> {
        route
            .lease()
            .map_or_else(|| self.nonces.clone(), |lease| lease.nonces.clone())
    }

    fn path_bytes(&self, key: &Key) -> usize {
        self.config.chroot().len() + key.as_str().len() + SEQUENCE_DIGITS
    }

    /// Counts the path on the lease; when it seems full, asks the server what is really there.
    async fn carry(&self, call: &Call, lease: &Arc<Lease>, place: &Key) -> Result<Place> {
        if let Ok(counted) = lease.carry(place, self.path_bytes(place)) {
            return Ok(counted);
        }
        let answer = lease
            .conn
            .read(|client| async move { client.list_ephemerals("/").await })
            .await;
        if let Ok(Ok(paths)) = answer {
            let keys = paths.into_iter().filter_map(|path| Key::new(path).ok());
            lease.recount(keys.map(|key| (key.clone(), self.path_bytes(&key))).collect());
        }
        lease
            .carry(place, self.path_bytes(place))
            .map_err(|_| call.definite(ErrorKind::LeaseFull(lease.id)))
    }
}

/// A guarded create that is about to leave.
struct Sending {
    config: Arc<crate::ZkConfig>,
    nonces: Arc<Nonces>,
    fresh: Option<Arc<crate::fresh::Fresh>>,
    key: Key,
    nonce: coord_api::Nonce,
    stored: Arc<[u8]>,
    mode: ZkMode,
}

impl Sending {
    async fn go(
        self,
        client: Arc<zookeeper_client::Client>,
    ) -> Result<Result<Moved, zookeeper_client::MultiWriteError>, Abandoned> {
        let sent = self.nonces.send(self.nonce, || {
            guard::create(&client, &self.config, &self.key, &self.stored, self.mode)
        })?;
        let answer = sent.await;
        if let Some(fresh) = self.fresh {
            fresh.moved_elsewhere();
        }
        Ok(answer)
    }
}
