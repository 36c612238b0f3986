use std::sync::Arc;

use bytes::Bytes;
use coord_api::{Entry, ErrorKind, Expect, Key, Result, Version};
use zookeeper_client::{Error as ZkError, MultiWriteError, MultiWriteResult, SessionId, Stat};

use crate::call::Call;
use crate::conn::{Conn, Over};
use crate::inner::{Inner, Route};
use crate::known::Incarnation;
use crate::{envelope, faults, guard, read};

/// What a conditional write does.
#[derive(Debug)]
pub(crate) enum Change {
    Set(Bytes),
    Delete,
}

/// The exact state that a conditional write expects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) incarnation: Incarnation,
    pub(crate) version: i32,
    /// Any later version of the incarnation will do as well.
    pub(crate) or_later: bool,
}

impl Inner {
    pub(crate) async fn update(&self, call: &Call, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        let change = Change::Set(value.clone());
        match self.change(call, key, &change, expected).await? {
            Some(stat) => Ok(read::entry_of(key, value, &stat)),
            None => Err(call.broken(ErrorKind::Refused("the server did not say what it wrote".into()))),
        }
    }

    pub(crate) async fn delete(&self, call: &Call, key: &Key, expected: Expect) -> Result<()> {
        let deleted = match expected {
            Expect::Any => self.delete_any(call, key).await,
            Expect::Version(_) => self.change(call, key, &Change::Delete, expected).await.map(|_| ()),
        };
        if deleted.is_ok() {
            self.forget(key);
        }
        deleted
    }

    /// Whatever stands there goes: no condition, so nothing to guard, and nothing to tell a second copy from another
    /// one's wish either.
    async fn delete_any(&self, call: &Call, key: &Key) -> Result<()> {
        loop {
            let route = self.route(key);
            let conn = self.conn_or_shared(&route).await;
            let fresh = route.lease().map(|_| self.fresh.clone());
            let path = key.clone();
            let answer = conn
                .write(call, |client| async move {
                    let answer = client.delete(path.as_str(), None).await;
                    if let Some(fresh) = fresh {
                        fresh.moved_elsewhere();
                    }
                    answer
                })
                .await;
            match answer {
                Err(Over) => {}
                Ok(Err(error)) if faults::is_ambiguous(&error) => return Err(call.broken(faults::kind(&error))),
                Ok(answer) => {
                    call.settled();
                    return answer.map_err(|error| call.refused(&error));
                }
            }
        }
    }

    async fn change(&self, call: &Call, key: &Key, change: &Change, expected: Expect) -> Result<Option<Stat>> {
        let wanted = match expected {
            Expect::Any => None,
            Expect::Version(version) => Some(version),
        };
        // A stale view must not refuse: before saying no, look again behind a barrier.
        let mut certain = false;
        // A write that expected this version left through this session, and its answer was lost.
        let mut doubt: Option<(Version, SessionId)> = None;
        let mut through_lease = false;
        loop {
            let route = self.route(key);
            let conn = self.conn_or_shared(&route).await;
            let known = wanted.and_then(read::version_parts).and_then(|(czxid, version)| {
                let incarnation = self.known.get(key, czxid)?;
                Some(Target {
                    incarnation,
                    version,
                    or_later: false,
                })
            });
            let target = match known {
                Some(target) if doubt.is_none() && !certain => target,
                _ => {
                    if (certain || doubt.is_some()) && conn.barrier().await.is_err() {
                        self.again().await;
                        continue;
                    }
                    let Some(seen) = self.look(call, &conn, key).await? else {
                        self.again().await;
                        continue;
                    };
                    if self.guard_missing(call, &conn, key, &seen).await? {
                        continue;
                    }
                    let now = seen.entry.as_ref().map(|(entry, _)| entry.version);
                    if let Some((version, session)) = doubt.take() {
                        // A barrier says something only of its own session; before a new shared one comes into service,
                        // the old one is known to be gone, but a lease's may not be.
                        let on_lease = route.lease().is_some_and(|lease| Arc::ptr_eq(&lease.conn, &conn));
                        let settled = conn.session().id() == session || !(through_lease || on_lease);
                        if now != Some(version) || !settled {
                            let lost = "the answer was lost and the entry has changed since";
                            return Err(call.broken(ErrorKind::Unavailable(lost.into())));
                        }
                        // Not executed, and behind the barrier it never will be.
                        call.settled();
                    }
                    if route.lease().is_some() {
                        // The caller may be told of it: later reads must not be older.
                        self.fresh.moved_elsewhere();
                    }
                    match seen.entry {
                        Some((entry, incarnation)) if wanted.is_none_or(|wanted| wanted == entry.version) => {
                            let Some((_, version)) = read::version_parts(entry.version) else {
                                return Err(call.definite(ErrorKind::VersionMismatch(now)));
                            };
                            Target {
                                incarnation,
                                version,
                                or_later: wanted.is_none(),
                            }
                        }
                        _ if !certain => {
                            certain = true;
                            continue;
                        }
                        Some((entry, _)) => return Err(call.definite(ErrorKind::VersionMismatch(Some(entry.version)))),
                        None => return Err(call.definite(ErrorKind::NotFound)),
                    }
                }
            };
            through_lease = route.lease().is_some();
            let Ok(answer) = self.send_change(call, &conn, &route, key, change, target).await else {
                continue;
            };
            let error = match answer {
                Ok(stat) => {
                    call.settled();
                    self.known.seen(key, target.incarnation);
                    return Ok(stat);
                }
                Err(error) => error,
            };
            self.known.forget(key);
            let Some((index, source)) = faults::failed_operation(&error) else {
                let error = ZkError::from(error);
                if !faults::is_ambiguous(&error) {
                    call.settled();
                    return Err(call.refused(&error));
                }
                doubt = Some((
                    read::version(target.incarnation.czxid, target.version),
                    conn.session().id(),
                ));
                self.again().await;
                continue;
            };
            call.settled();
            match (index, source) {
                // Only the guard moved, or is missing: look again.
                (0, ZkError::BadVersion | ZkError::NoNode) => {}
                // Changed or gone, which is the end of it for who expects a version; look, to say what is there now.
                (_, ZkError::BadVersion | ZkError::NoNode) => certain = wanted.is_some(),
                (_, error) => return Err(call.refused(error)),
            }
        }
    }

    /// Sends the change on condition that the guard has not moved and the version is the expected one.
    pub(crate) async fn send_change(
        &self,
        call: &Call,
        conn: &Conn,
        route: &Route,
        key: &Key,
        change: &Change,
        target: Target,
    ) -> Result<Result<Option<Stat>, MultiWriteError>, Over> {
        let fresh = route.lease().map(|_| self.fresh.clone());
        let key = key.clone();
        let version = (!target.or_later).then_some(target.version);
        let stored = match change {
            Change::Set(value) => Some(envelope::seal(target.incarnation.nonce, value)),
            Change::Delete => None,
        };
        conn.write(call, |client| async move {
            let mut writer = client.new_multi_writer();
            let checked = match target.incarnation.guard {
                Some(version) => writer.add_check_version(&guard::path(&key), version),
                // A sequential name is never used again, so its version is enough; the check only keeps the numbering.
                None => writer.add_check_version("/", -1),
            };
            let added = checked.and_then(|()| match &stored {
                Some(stored) => writer.add_set_data(key.as_str(), stored, version),
                None => writer.add_delete(key.as_str(), version),
            });
            let answer = match added {
                Ok(()) => writer.commit().await,
                Err(source) => Err(MultiWriteError::OperationFailed { index: 1, source }),
            };
            if let Some(fresh) = fresh {
                fresh.moved_elsewhere();
            }
            answer.map(|results| match results.get(1) {
                Some(MultiWriteResult::SetData { stat }) => Some(*stat),
                _ => None,
            })
        })
        .await
    }

    /// An entry that one of our leases carries is written through that one's session, in order with its create.
    fn route(&self, key: &Key) -> Route {
        match self.leases.carrier(key) {
            Some(lease) if !lease.conn.state().is_terminated() => Route::Lease(lease),
            _ => Route::Shared,
        }
    }

    async fn conn_or_shared(&self, route: &Route) -> Arc<Conn> {
        match route {
            Route::Lease(lease) if lease.conn.connected().await.is_ok() => lease.conn.clone(),
            _ => self.shared.conn().await,
        }
    }
}
