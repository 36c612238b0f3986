use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coord_api::{Env, Error, ErrorKind, Grant, Instant, Key, LeaseId, Operation, Result, driver};
use etcd_client::{LeaseGrantOptions, ResponseHeader};

use crate::core::Core;
use crate::failure::{Failure, Reason};
use crate::keyspace::{signed, unsigned};
use crate::pool::{Call, Link, Repeat, Revision};

/// The leases of one coordinator. Their ids begin with a number of its own, so that it knows them again for ever
/// without keeping a list.
#[derive(Debug)]
pub(crate) struct Leases {
    own: u64,
    live: Mutex<BTreeSet<LeaseId>>,
}

/// A keep-alive that was answered, and proven.
struct Renewed {
    header: Option<ResponseHeader>,
    ttl: Duration,
    valid_until: Instant,
}

impl Leases {
    pub(crate) fn new(env: &Env) -> Leases {
        Leases {
            // 31 bits, and never zero: an id is positive.
            own: (env.random_u64() >> 33) | 1,
            live: Mutex::default(),
        }
    }

    /// A new id. We choose it ourselves, so that a repeated grant answers "exists already" instead of leaking another.
    pub(crate) fn new_id(&self, env: &Env) -> LeaseId {
        LeaseId((self.own << 32) | (env.random_u64() >> 32))
    }

    pub(crate) fn check_own(&self, operation: Operation, key: Option<&Key>, lease: LeaseId) -> Result<()> {
        if lease.0 >> 32 == self.own {
            return Ok(());
        }
        Err(Error::definite(operation, key, ErrorKind::ForeignLease(lease)))
    }

    pub(crate) fn take_live(&self) -> Vec<LeaseId> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<LeaseId>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    pub(crate) async fn grant(&self, ttl: Duration, call: Call) -> Result<Grant> {
        driver::check_ttl(ttl, &self.capabilities())?;
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let lease = self.leases.new_id(&self.env);
        // Known before it is asked for, so that close also ends one whose answer was lost.
        self.leases.lock().insert(lease);
        let granted = self.grant_lease(lease, seconds, call).await.map_err(|failure| {
            if !failure.is_transient() {
                self.leases.lock().remove(&lease);
            }
            failure.into_error(Operation::Grant, None)
        });
        if let Err(closed) = self.check_open(Operation::Grant, None) {
            // Granted while close went through the list. If the revoke fails, it ends by its ttl.
            let _ = self.revoke_lease(lease, call).await;
            return Err(closed);
        }
        granted
    }

    /// Grants a lease of the given id, or finds that it was granted by an earlier copy of the request.
    ///
    /// Its life counts from the sending: it is a write of the log, so every leader that there may be, now or later,
    /// counts from a moment after it.
    pub(crate) async fn grant_lease(&self, lease: LeaseId, seconds: u64, call: Call) -> Result<Grant, Failure> {
        let (id, sent) = (signed(lease.0), self.env.now());
        let granted = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                let options = LeaseGrantOptions::new().with_id(id);
                link.lease().grant(signed(seconds), Some(options)).await
            })
            .await;
        match granted {
            Ok(answer) => {
                let ttl = Duration::from_secs(unsigned(answer.ttl()));
                Ok(Grant {
                    lease,
                    ttl,
                    valid_until: sent + ttl,
                })
            }
            Err(failure) if failure.reason == Reason::LeaseExists => self.renew_lease(lease, call).await,
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn renew(&self, lease: LeaseId, call: Call) -> Result<Grant> {
        self.leases.check_own(Operation::Renew, None, lease)?;
        self.renew_lease(lease, call).await.map_err(|failure| {
            if failure.reason == Reason::LeaseNotFound {
                self.leases.lock().remove(&lease);
                return Error::definite(Operation::Renew, None, ErrorKind::LeaseLost(lease));
            }
            failure.into_error(Operation::Renew, None)
        })
    }

    async fn renew_lease(&self, lease: LeaseId, call: Call) -> Result<Grant, Failure> {
        let renewed = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                // A leader may answer "not found" before it has applied the grant; after a write has gone through, no more.
                match self.keep_alive_proven(&link, lease).await {
                    Err(etcd_client::Error::LeaseKeepAliveError(_)) => {
                        link.kv().delete(self.space.nothing(), None).await?;
                        self.keep_alive_proven(&link, lease).await
                    }
                    done => done,
                }
            })
            .await?;
        Ok(Grant {
            lease,
            ttl: renewed.ttl,
            valid_until: renewed.valid_until,
        })
    }

    /// A keep-alive, and proof that it counts. An acknowledgement alone is none: a deposed leader gives it, too. But if a
    /// write that is sent after it commits, and both answers carry the same term, then the leader that renewed the lease
    /// was still the leader, and every later one grants it a full ttl again.
    async fn keep_alive_proven(&self, link: &Link, lease: LeaseId) -> Result<Renewed, etcd_client::Error> {
        let closed = || etcd_client::Error::Internal("the keep-alive stream ended".into());
        let (mut keeper, mut answers) = link.lease().keep_alive(signed(lease.0)).await?;
        let mut kv = link.kv();
        for _ in 0..3 {
            // The first answer's header is hidden by the opening call, so the term comes from a second one.
            let sent = self.env.now();
            keeper.keep_alive().await?;
            let answer = answers.message().await?.ok_or_else(closed)?;
            if answer.ttl() <= 0 {
                return Err(etcd_client::Error::LeaseKeepAliveError("lease not found".into()));
            }
            let mut write = kv.delete(self.space.nothing(), None).await?;
            let term = |header: Option<&ResponseHeader>| header.map(ResponseHeader::raft_term);
            if term(answer.header()) == term(write.header()) {
                let ttl = Duration::from_secs(unsigned(answer.ttl()));
                return Ok(Renewed {
                    header: write.take_header(),
                    ttl,
                    valid_until: sent + ttl,
                });
            }
        }
        Err(etcd_client::Error::Internal("the leader keeps changing".into()))
    }

    pub(crate) async fn revoke(&self, lease: LeaseId, call: Call) -> Result<()> {
        self.leases.check_own(Operation::Revoke, None, lease)?;
        self.revoke_lease(lease, call)
            .await
            .map_err(|failure| failure.into_error(Operation::Revoke, None))
    }

    pub(crate) async fn revoke_lease(&self, lease: LeaseId, call: Call) -> Result<(), Failure> {
        let revoked = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                link.lease().revoke(signed(lease.0)).await
            })
            .await;
        match revoked {
            Err(failure) if failure.reason != Reason::LeaseNotFound => Err(failure),
            _ => {
                self.leases.lock().remove(&lease);
                Ok(())
            }
        }
    }

    /// Whether the store still knows the lease.
    pub(crate) async fn lease_lives(&self, lease: LeaseId, call: Call) -> Result<bool, Failure> {
        let answer = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                link.lease().time_to_live(signed(lease.0), None).await
            })
            .await;
        match answer {
            Ok(answer) => Ok(answer.ttl() > 0),
            Err(failure) if failure.reason == Reason::LeaseNotFound => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

impl Revision for Renewed {
    fn header(&self) -> Option<&ResponseHeader> {
        self.header.as_ref()
    }
}
