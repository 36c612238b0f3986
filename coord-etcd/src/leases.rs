use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coord_api::{Class, Env, Error, ErrorKind, Grant, Instant, Key, LeaseId, Operation, Result, driver};
use etcd_client::{LeaseGrantOptions, ResponseHeader};

use crate::core::Core;
use crate::failure::{Failure, LEASE_NOT_FOUND, Reason};
use crate::keyspace::{signed, unsigned};
use crate::pool::{Call, Link, Repeat, Revision};

/// A lease that nobody renewed for this much longer than it was valid is not remembered any more: it has ended.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
/// So many leases are remembered before those that have ended are looked for.
const MANY: usize = 1024;

/// The leases of one coordinator. Their ids begin with a number of its own, so that it knows them again for ever
/// without keeping a list.
#[derive(Debug)]
pub(crate) struct Leases {
    own: u64,
    live: Mutex<Live>,
}

/// Those that may live, as far as we know, and until when they surely do.
///
/// A copy of a grant may be late, and would bring back a lease that has ended, without its entries. So one that we know
/// to have ended is not asked for again.
#[derive(Debug)]
struct Live {
    until: BTreeMap<LeaseId, Instant>,
    /// When to look for forgotten ones next.
    sweep_at: usize,
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
            live: Mutex::new(Live {
                until: BTreeMap::new(),
                sweep_at: MANY,
            }),
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

    /// Like [`check_own`](Self::check_own), and that it has not ended as far as we know.
    pub(crate) fn check_live(&self, operation: Operation, key: Option<&Key>, lease: LeaseId) -> Result<()> {
        self.check_own(operation, key, lease)?;
        if self.lock().until.contains_key(&lease) {
            return Ok(());
        }
        Err(Error::definite(operation, key, ErrorKind::LeaseLost(lease)))
    }

    pub(crate) fn take_live(&self) -> Vec<LeaseId> {
        std::mem::take(&mut self.lock().until).into_keys().collect()
    }

    /// It is surely valid until this moment, from now on.
    fn remember(&self, lease: LeaseId, valid_until: Instant, now: Instant) {
        let mut live = self.lock();
        if live.until.len() >= live.sweep_at {
            live.until.retain(|_, until| *until + REMEMBERED_FOR > now);
            live.sweep_at = MANY.max(live.until.len() * 2);
        }
        live.until.insert(lease, valid_until);
    }

    /// A renewal of one that is remembered.
    fn extend(&self, lease: LeaseId, valid_until: Instant) {
        if let Some(until) = self.lock().until.get_mut(&lease) {
            *until = valid_until.max(*until);
        }
    }

    pub(crate) fn forget(&self, lease: LeaseId) {
        self.lock().until.remove(&lease);
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    pub(crate) async fn grant(&self, ttl: Duration, call: Call) -> Result<Grant> {
        driver::check_ttl(ttl, &self.capabilities())?;
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let lease = self.leases.new_id(&self.env);
        // Known before it is asked for, so that close also ends one whose answer was lost.
        let now = self.env.now();
        self.leases.remember(lease, now + ttl, now);
        let mut granted = self.grant_lease(lease, seconds, call).await;
        if matches!(&granted, Err(failure) if failure.may_have_crossed_the_quota())
            && self.revoke_lease(lease, call).await.is_err()
        {
            granted = granted.map_err(Failure::unknown);
        }
        let granted = granted.map_err(|failure| {
            // What never left is nothing for close to revoke.
            if failure.class != Class::Unknown {
                self.leases.forget(lease);
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
            // Granted, whatever comes of the question until when.
            Err(failure) if failure.reason == Reason::LeaseExists => {
                self.renew_lease(lease, call)
                    .await
                    .map_err(|failure| match failure.is_transient() {
                        true => Failure {
                            class: Class::Unknown,
                            ..failure
                        },
                        false => failure,
                    })
            }
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn renew(&self, lease: LeaseId, call: Call) -> Result<Grant> {
        self.leases.check_live(Operation::Renew, None, lease)?;
        match self.renew_lease(lease, call).await {
            Ok(grant) => {
                self.leases.extend(lease, grant.valid_until);
                Ok(grant)
            }
            Err(failure) if failure.reason == Reason::LeaseNotFound => {
                self.leases.forget(lease);
                Err(Error::definite(Operation::Renew, None, ErrorKind::LeaseLost(lease)))
            }
            Err(failure) => Err(failure.into_error(Operation::Renew, None)),
        }
    }

    async fn renew_lease(&self, lease: LeaseId, call: Call) -> Result<Grant, Failure> {
        let renewed = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                // A leader may answer "not found" before it has applied the grant; after a write has gone through, no more.
                match self.keep_alive_proven(&link, lease).await {
                    Err(etcd_client::Error::LeaseKeepAliveError(what)) if what == LEASE_NOT_FOUND => {
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
                return Err(etcd_client::Error::LeaseKeepAliveError(LEASE_NOT_FOUND.into()));
            }
            let mut write = kv.delete(self.space.nothing(), None).await?;
            let term = |header: Option<&ResponseHeader>| header.map(ResponseHeader::raft_term);
            let ttl = Duration::from_secs(unsigned(answer.ttl()));
            let valid_until = sent + ttl;
            // What was on its way for a whole ttl proves nothing about now: ask again.
            if term(answer.header()) == term(write.header()) && self.env.now() < valid_until {
                return Ok(Renewed {
                    header: write.take_header(),
                    ttl,
                    valid_until,
                });
            }
        }
        Err(etcd_client::Error::Internal(
            "the leader keeps changing, or answers too late".into(),
        ))
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
                self.leases.forget(lease);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_ended_long_ago_cost_no_memory() {
        let leases = Leases::new(&Env::simulated(1));
        let at = |seconds| Instant::from_start(Duration::from_secs(seconds));
        let kept = LeaseId((leases.own << 32) | 7);
        leases.remember(kept, at(10), at(0));
        for n in 0..20_000 {
            let lease = LeaseId((leases.own << 32) | (1000 + n));
            leases.remember(lease, at(n + 10), at(n));
            leases.extend(kept, at(n + 10));
        }
        assert!(leases.lock().until.len() < 10_000, "{}", leases.lock().until.len());
        assert!(leases.check_live(Operation::Renew, None, kept).is_ok());
        leases.forget(kept);
        leases.extend(kept, at(30_000));
        let lost = leases.check_live(Operation::Renew, None, kept).unwrap_err();
        assert!(lost.is_lease_lost(), "{lost:?}");
    }
}
