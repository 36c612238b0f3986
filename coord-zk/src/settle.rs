//! Finding out what became of a create, and giving one up for good.

use coord_api::{Create, CreateMode, Entry, ErrorKind, Key, Result};
use zookeeper_client::{Error as ZkError, MultiReadResult};

use crate::call::Call;
use crate::conn::{Barrier, Conn};
use crate::inner::{Inner, Route};
use crate::known::Incarnation;
use crate::parents::Made;
use crate::write::{Change, Target};
use crate::{envelope, faults, guard, names, read};

/// What stands under a key, and the guard that stood before it was read.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) guard: Option<i32>,
    pub(crate) entry: Option<(Entry, Incarnation)>,
}

/// What became of a copy of a create whose answer was lost.
pub(crate) enum Settled {
    Made(Entry),
    /// It did not happen, and never will.
    NotMade,
    /// The connection was lost: begin anew.
    NotYet,
}

impl Inner {
    /// What became of a copy of this create of a fixed name, by a look behind a barrier on the session that sent it.
    /// That its entry is not there is no proof, somebody may have deleted it since; that no create has moved the guard
    /// is. `before` is where the guard stood before the copy left.
    pub(crate) async fn settle_fixed(
        &self,
        call: &Call,
        conn: &Conn,
        route: &Route,
        create: &Create,
        before: i32,
    ) -> Result<Settled> {
        if let Err(barrier) = conn.barrier().await {
            if let Barrier::Lost(_) = barrier {
                self.again().await;
            }
            return Ok(Settled::NotYet);
        }
        let Some(Seen { guard, entry }) = self.look(call, conn, &create.key).await? else {
            self.again().await;
            return Ok(Settled::NotYet);
        };
        if route.lease().is_some() {
            // The caller may learn of it now: later reads must not be older.
            self.fresh.moved_elsewhere();
        }
        let creates = guard.map(|now| now.wrapping_sub(before));
        match (entry, creates) {
            (Some((entry, incarnation)), _) if incarnation.nonce == Some(create.nonce) => {
                call.settled();
                if incarnation.guard.is_some() {
                    self.known.seen(&create.key, incarnation);
                }
                Ok(Settled::Made(entry))
            }
            // Had ours come before this one, the guard would have moved twice, unless another tool made this one.
            (Some((entry, incarnation)), Some(creates @ (0 | 1))) if creates == 0 || incarnation.nonce.is_some() => {
                call.settled();
                Err(call.definite(ErrorKind::AlreadyExists(Box::new(entry))))
            }
            (None, Some(0)) => {
                call.settled();
                Ok(Settled::NotMade)
            }
            _ => {
                let lost = "the answer was lost, and others have created entries since";
                Err(call.broken(ErrorKind::Unavailable(lost.into())))
            }
        }
    }

    /// What this create made, looked for behind a barrier on the session that sent it: what is not there then will
    /// not come. The outer `None` means that the connection was lost: begin anew.
    pub(crate) async fn find_after_barrier(
        &self,
        call: &Call,
        conn: &Conn,
        create: &Create,
    ) -> Result<Option<Option<Entry>>> {
        match conn.barrier().await {
            Ok(()) => {}
            Err(Barrier::Over) => return Ok(None),
            Err(Barrier::Lost(_)) => {
                self.again().await;
                return Ok(None);
            }
        }
        let key = match create.mode {
            CreateMode::Sequential(_) => {
                let parent = create.key.clone();
                let names = conn
                    .read(|client| async move { client.list_children(parent.as_str()).await })
                    .await;
                let names = match names {
                    Ok(Ok(names)) => names,
                    Ok(Err(ZkError::NoNode)) => return Ok(Some(None)),
                    Ok(Err(error)) if !faults::is_ambiguous(&error) => return Err(call.refused(&error)),
                    _ => return Ok(None),
                };
                let prefix = names::sequential_prefix(create.nonce);
                match names.into_iter().find(|name| name.starts_with(&prefix)) {
                    None => return Ok(Some(None)),
                    Some(name) => create
                        .key
                        .child(name)
                        .map_err(|invalid| call.definite(ErrorKind::InvalidKey(invalid)))?,
                }
            }
            _ => create.key.clone(),
        };
        let answer = {
            let key = key.clone();
            conn.read(|client| async move { client.get_data(key.as_str()).await })
                .await
        };
        match answer {
            Ok(Ok((stored, stat))) => {
                let opened = envelope::open(stored);
                let ours = key.is_sequential() || opened.nonce == Some(create.nonce);
                if ours && key.is_sequential() {
                    self.remember_sequential(&key, stat.czxid);
                }
                Ok(Some(ours.then(|| read::entry_of(&key, opened.value, &stat))))
            }
            Ok(Err(ZkError::NoNode)) => Ok(Some(None)),
            Ok(Err(error)) if !faults::is_ambiguous(&error) => Err(call.refused(&error)),
            _ => Ok(None),
        }
    }

    pub(crate) async fn abandon(&self, call: &Call, create: &Create) -> Result<()> {
        let Some(id) = create.mode.lease() else {
            self.nonces.abandon(create.nonce);
            return self.undo(call, &Route::Shared, create).await.map(|_| ());
        };
        match self.leases.get(id) {
            Ok(lease) => {
                lease.nonces.abandon(create.nonce);
                if self.undo(call, &Route::Lease(lease.clone()), create).await? {
                    lease.nonces.settled(create.nonce);
                    return Ok(());
                }
            }
            Err(kind @ ErrorKind::ForeignLease(_)) => return Err(call.definite(kind)),
            Err(_) => {}
        }
        // The session is over for us. Once the server says so, too, its entries are gone, and what was still on its way
        // finds no session.
        let ended = self.leases.end(&self.env, &self.config, id).await;
        self.fresh.moved_elsewhere();
        ended.map_err(|kind| call.definite(kind))
    }

    /// Deletes what the create made, if it did. False if the lease has ended.
    async fn undo(&self, call: &Call, route: &Route, create: &Create) -> Result<bool> {
        loop {
            let conn = match route {
                Route::Shared => self.shared.conn().await,
                Route::Lease(lease) if lease.has_ended() || lease.conn.connected().await.is_err() => return Ok(false),
                Route::Lease(lease) => lease.conn.clone(),
            };
            let entry = match self.find_after_barrier(call, &conn, create).await? {
                None => continue,
                Some(None) => return Ok(true),
                Some(Some(entry)) => entry,
            };
            let incarnation = if entry.key.is_sequential() {
                Incarnation {
                    czxid: entry.created as i64,
                    nonce: None,
                    guard: None,
                }
            } else {
                let Some(seen) = self.look(call, &conn, &entry.key).await? else {
                    continue;
                };
                match seen.entry {
                    Some((now, incarnation)) if now.version == entry.version && incarnation.guard.is_some() => {
                        incarnation
                    }
                    Some((_, incarnation)) if incarnation.guard.is_none() => {
                        self.make_guard(call, &conn, &entry.key).await?;
                        continue;
                    }
                    _ => continue,
                }
            };
            let Some((_, version)) = read::version_parts(entry.version) else {
                continue;
            };
            let target = Target {
                incarnation,
                version,
                or_later: false,
            };
            match self
                .send_change(call, &conn, route, &entry.key, &Change::Delete, target)
                .await
            {
                Ok(Ok(_)) => {
                    call.settled();
                    self.forget(&entry.key);
                    return Ok(true);
                }
                Ok(Err(error)) => match faults::failed_operation(&error) {
                    // The next look tells.
                    Some((_, ZkError::NoNode | ZkError::BadVersion)) => call.settled(),
                    Some((_, error)) => {
                        call.settled();
                        return Err(call.refused(error));
                    }
                    None => self.again().await,
                },
                Err(_) => {}
            }
        }
    }

    /// Guard and entry in one request, in this order: while the guard stands where it was seen, no other incarnation
    /// than the one that was seen has come. `None` if the connection was lost.
    pub(crate) async fn look(&self, call: &Call, conn: &Conn, key: &Key) -> Result<Option<Seen>> {
        let answer = {
            let key = key.clone();
            conn.read(|client| async move {
                let mut reader = client.new_multi_reader();
                reader.add_get_data(&guard::path(&key))?;
                reader.add_get_data(key.as_str())?;
                reader.commit().await
            })
            .await
        };
        let mut results = match answer {
            Ok(Ok(results)) => results.into_iter(),
            Ok(Err(error)) if !faults::is_ambiguous(&error) => return Err(call.refused(&error)),
            _ => return Ok(None),
        };
        let guard = match results.next() {
            Some(MultiReadResult::Data { stat, .. }) => Some(stat.version),
            Some(MultiReadResult::Error { err }) if err != ZkError::NoNode => return Err(call.refused(&err)),
            _ => None,
        };
        let entry = match results.next() {
            Some(MultiReadResult::Data { data, stat }) => {
                let opened = envelope::open(data);
                let incarnation = Incarnation {
                    czxid: stat.czxid,
                    nonce: opened.nonce,
                    guard: guard.filter(|_| !key.is_sequential()),
                };
                Some((read::entry_of(key, opened.value, &stat), incarnation))
            }
            Some(MultiReadResult::Error { err }) if err != ZkError::NoNode => return Err(call.refused(&err)),
            _ => None,
        };
        Ok(Some(Seen { guard, entry }))
    }

    /// The entry is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.known.forget(key);
        if let Some(lease) = self.leases.carrier(key) {
            lease.release(key);
        }
    }

    /// Whether the guard had to be made, or the connection was lost: begin anew.
    pub(crate) async fn guard_missing(&self, call: &Call, conn: &Conn, key: &Key, seen: &Seen) -> Result<bool> {
        if key.is_sequential() || seen.guard.is_some() {
            return Ok(false);
        }
        if let Made::Lost = self.make_guard(call, conn, key).await? {
            self.again().await;
        }
        Ok(true)
    }
}
