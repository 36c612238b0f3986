use std::sync::Arc;

use coord_api::{Class, Create, CreateMode, Entry, Error, ErrorKind, Key, LeaseId, Operation, Result, Version, driver};
use etcd_client::{
    Compare, CompareOp, GetOptions, KeyValue, PutOptions, ResponseHeader, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use crate::core::Core;
use crate::entries::found;
use crate::failure::{Failure, Reason};
use crate::keyspace::{named, signed, unsigned};
use crate::pool::{Call, Link, Repeat, Revision};

/// What a record says of a create that may not happen any more.
const ABANDONED: &[u8] = b"abandoned";
/// What it says of one that has happened.
const CREATED: &[u8] = b"created";
/// etcd takes 128 operations in one transaction.
const MOST_PARENTS: usize = 100;

/// One create as etcd sees it.
struct Attempt<'a> {
    create: &'a Create,
    key: Key,
    name: String,
    record: String,
    parents: Vec<Key>,
}

/// What the transaction of a create tells.
struct Outcome {
    answer: TxnResponse,
    /// What holds the key, what the record says, and the parents: only if it did not happen just now.
    holder: Option<KeyValue>,
    record: Option<KeyValue>,
    parents: Vec<KeyValue>,
}

impl Core {
    pub(crate) async fn create(&self, create: &Create, call: Call) -> Result<Entry> {
        driver::check_create(create, &self.capabilities())?;
        let fail = |failure: Failure| failure.into_error(Operation::Create, Some(&create.key));
        let attempt = self.attempt(Operation::Create, create)?;
        if let Some(lease) = create.mode.lease() {
            self.leases.check_live(Operation::Create, Some(&create.key), lease)?;
        }
        self.make_high_parents(&attempt, call).await.map_err(fail)?;
        // Once more if the ledger's lease turns out to have ended: then nothing was done under it.
        for last in [false, true] {
            let ledger = match self.ledger.lease_of(create.nonce) {
                Some(ledger) if !last => ledger,
                _ => self.ledger_lease(call).await.map_err(fail)?,
            };
            let sent = self.send_create(&attempt, ledger, call).await;
            match sent {
                Ok(outcome) => {
                    self.ledger.forget(create.nonce);
                    return self.judge(&attempt, outcome);
                }
                Err(failure) if failure.reason == Reason::LeaseNotFound => {
                    if let Some(lease) = create.mode.lease()
                        && !self.lease_lives(lease, call).await.map_err(fail)?
                    {
                        self.leases.forget(lease);
                        self.ledger.forget(create.nonce);
                        return Err(error(create, ErrorKind::LeaseLost(lease)));
                    }
                    self.ledger.drop_lease(ledger).await;
                    self.ledger.forget(create.nonce);
                    if last {
                        return Err(fail(Failure::unavailable(
                            Class::NotSent,
                            "the ledger's lease ended early",
                        )));
                    }
                }
                Err(failure) => {
                    let failure = match failure.may_have_crossed_the_quota() {
                        false => failure,
                        true => match self.look_for(&attempt, call).await {
                            Ok(Some(made)) => return self.judge(&attempt, made),
                            Ok(None) => failure,
                            Err(_) => failure.unknown(),
                        },
                    };
                    if failure.class == Class::Unknown {
                        self.ledger.remember(create.nonce, ledger);
                    }
                    return Err(fail(failure));
                }
            }
        }
        Err(fail(Failure::unavailable(Class::NotSent, "no lease for the ledger")))
    }

    fn attempt<'a>(&self, operation: Operation, create: &'a Create) -> Result<Attempt<'a>> {
        if let Some(lease) = create.mode.lease() {
            self.leases.check_own(operation, Some(&create.key), lease)?;
        }
        let key = match create.mode {
            CreateMode::Sequential(_) => create
                .key
                .child(format!("~{}", create.nonce))
                .map_err(|invalid| Error::definite(operation, Some(&create.key), ErrorKind::InvalidKey(invalid)))?,
            _ => create.key.clone(),
        };
        Ok(Attempt {
            create,
            name: self.space.name(&key),
            record: self.space.record(create.nonce),
            parents: key.ancestors().collect(),
            key,
        })
    }

    async fn send_create(&self, attempt: &Attempt<'_>, ledger: LeaseId, call: Call) -> Result<Outcome, Failure> {
        let create = attempt.create;
        let parents = &attempt.parents[..attempt.parents.len().min(MOST_PARENTS)];
        self.pool
            .call(call.repeat(Repeat::Guarded), |link: Arc<Link>| async move {
                let mut when = vec![
                    Compare::create_revision(attempt.name.as_str(), CompareOp::Equal, 0),
                    Compare::create_revision(attempt.record.as_str(), CompareOp::Equal, 0),
                ];
                let lease = create.mode.lease().map_or(0, |lease| signed(lease.0));
                let options = |lease| Some(PutOptions::new().with_lease(lease));
                let mut then = vec![
                    TxnOp::put(attempt.name.as_str(), create.value.as_ref(), options(lease)),
                    TxnOp::put(attempt.record.as_str(), CREATED, options(signed(ledger.0))),
                ];
                let mut otherwise = vec![
                    TxnOp::get(attempt.name.as_str(), None),
                    TxnOp::get(attempt.record.as_str(), None),
                ];
                for parent in parents {
                    let parent = self.space.name(parent);
                    // Holds for a missing parent, too.
                    when.push(Compare::lease(parent.as_str(), CompareOp::Equal, 0));
                    then.push(TxnOp::txn(make_missing(&parent)));
                    otherwise.push(TxnOp::get(parent, Some(GetOptions::new().with_keys_only())));
                }
                let txn = Txn::new().when(when).and_then(then).or_else(otherwise);
                link.kv().txn(txn).await.map(Outcome::of)
            })
            .await
    }

    /// What became of a create of which no copy is under way any more; `None` if nothing. Through the log: a read alone
    /// can be stale.
    async fn look_for(&self, attempt: &Attempt<'_>, call: Call) -> Result<Option<Outcome>, Failure> {
        let answer = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                let get = |name: &str| TxnOp::get(name, None);
                let nothing = || TxnOp::delete(self.space.nothing(), None);
                let txn = Txn::new()
                    .when([Compare::create_revision(attempt.record.as_str(), CompareOp::Equal, 0)])
                    .and_then([nothing()])
                    .or_else([get(&attempt.name), get(&attempt.record), nothing()]);
                link.kv().txn(txn).await
            })
            .await?;
        Ok((!answer.succeeded()).then(|| Outcome::read(answer)))
    }

    fn judge(&self, attempt: &Attempt<'_>, outcome: Outcome) -> Result<Entry> {
        let create = attempt.create;
        let as_created = |revision: u64| Entry {
            key: attempt.key.clone(),
            value: create.value.clone(),
            version: Version::new(revision, revision),
            created: revision,
            lease: create.mode.lease(),
        };
        if outcome.answer.succeeded() {
            return Ok(as_created(revision(outcome.answer.header())));
        }
        match (outcome.record, outcome.holder) {
            (Some(record), _) if record.value() == ABANDONED => Err(error(create, ErrorKind::Abandoned)),
            // An earlier copy of this very create made it; it may have been updated since, or be gone again.
            (Some(record), holder) => match holder {
                Some(holder) if holder.create_revision() == record.create_revision() => {
                    Ok(named(attempt.key.clone(), holder))
                }
                _ => Ok(as_created(unsigned(record.create_revision()))),
            },
            // Nobody else uses this name: an earlier copy made it, so long ago that its record is gone.
            (None, Some(holder)) if matches!(create.mode, CreateMode::Sequential(_)) => {
                Ok(named(attempt.key.clone(), holder))
            }
            (None, Some(holder)) => {
                let holder = named(attempt.key.clone(), holder);
                Err(error(create, ErrorKind::AlreadyExists(Box::new(holder))))
            }
            (None, None) => Err(error(create, self.bad_parent(&outcome.parents))),
        }
    }

    /// Why a create is refused although nothing holds its name.
    fn bad_parent(&self, parents: &[KeyValue]) -> ErrorKind {
        let ephemeral = parents.iter().find(|parent| parent.lease() != 0);
        match ephemeral.and_then(|parent| self.space.key(parent.key())) {
            Some(parent) => ErrorKind::EphemeralParent(parent),
            None => ErrorKind::Refused("the store gave no reason".into()),
        }
    }

    /// The topmost parents of a very deep key, which do not fit into the transaction of its create.
    async fn make_high_parents(&self, attempt: &Attempt<'_>, call: Call) -> Result<(), Failure> {
        let high = attempt.parents.get(MOST_PARENTS..).unwrap_or_default();
        for parents in high.rchunks(MOST_PARENTS) {
            let answer = self
                .pool
                .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                    let names = || parents.iter().map(|parent| self.space.name(parent));
                    let keys_only = || Some(GetOptions::new().with_keys_only());
                    let when: Vec<_> = names().map(|name| Compare::lease(name, CompareOp::Equal, 0)).collect();
                    let then: Vec<_> = names().map(|name| TxnOp::txn(make_missing(&name))).collect();
                    let otherwise: Vec<_> = names().map(|name| TxnOp::get(name, keys_only())).collect();
                    link.kv()
                        .txn(Txn::new().when(when).and_then(then).or_else(otherwise))
                        .await
                })
                .await
                // The entry itself was not asked for yet.
                .map_err(|failure| match failure.class {
                    Class::Unknown => Failure {
                        class: Class::NotSent,
                        ..failure
                    },
                    _ => failure,
                })?;
            if !answer.succeeded() {
                return Err(Failure::new(Class::Definite, self.bad_parent(&found(&answer))));
            }
        }
        Ok(())
    }

    pub(crate) async fn abandon(&self, create: &Create, call: Call) -> Result<()> {
        driver::check_abandon(create, &self.capabilities())?;
        let fail = |failure: Failure| {
            // A tombstone needs room, too: until there is some, the create is not settled.
            let failure = match failure.reason {
                Reason::Full => failure.unknown(),
                _ => failure,
            };
            failure.into_error(Operation::Abandon, Some(&create.key))
        };
        let attempt = self.attempt(Operation::Abandon, create)?;
        for last in [false, true] {
            // The tombstone under the very lease that late copies name: while it is there it stops them, and once it is
            // gone its lease is, which stops them as well.
            let ledger = match self.ledger.lease_of(create.nonce) {
                Some(ledger) if !last => ledger,
                _ => self.ledger_lease(call).await.map_err(fail)?,
            };
            match self.fence_off(&attempt, ledger, call).await {
                Ok(()) => {
                    self.ledger.forget(create.nonce);
                    return Ok(());
                }
                Err(failure) if failure.reason == Reason::LeaseNotFound && !last => {
                    self.ledger.drop_lease(ledger).await;
                }
                Err(failure) => return Err(fail(failure)),
            }
        }
        Err(fail(Failure::unavailable(Class::NotSent, "no lease for the ledger")))
    }

    async fn fence_off(&self, attempt: &Attempt<'_>, ledger: LeaseId, call: Call) -> Result<(), Failure> {
        let tombstone = || {
            let options = PutOptions::new().with_lease(signed(ledger.0));
            TxnOp::put(attempt.record.as_str(), ABANDONED, Some(options))
        };
        let tombstone = &tombstone;
        let looked = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                let txn = Txn::new()
                    .when([Compare::create_revision(attempt.record.as_str(), CompareOp::Equal, 0)])
                    .and_then([TxnOp::get(attempt.name.as_str(), None), tombstone()])
                    .or_else([
                        TxnOp::get(attempt.name.as_str(), None),
                        TxnOp::get(attempt.record.as_str(), None),
                    ]);
                link.kv().txn(txn).await
            })
            .await?;
        let fenced_now = looked.succeeded();
        let Outcome { holder, record, .. } = Outcome::read(looked);
        // What to delete: what this create made, and nothing else.
        let own = match (record, holder) {
            (_, None) => return Ok(()),
            (Some(record), Some(holder)) if holder.create_revision() == record.create_revision() => holder,
            (_, Some(holder)) if matches!(attempt.create.mode, CreateMode::Sequential(_)) => holder,
            // Its record is gone with its lease, or never was: then only its lease and value can tell whose it is.
            (None, Some(holder)) if fenced_now && self.looks_like(attempt.create, &holder) => holder,
            _ => return Ok(()),
        };
        let created = own.create_revision();
        let (first, end) = &self.space.below(&attempt.key);
        let answer = self
            .pool
            .call(call.repeat(Repeat::Freely), |link: Arc<Link>| async move {
                let name = attempt.name.as_str();
                let undo = Txn::new()
                    .when([
                        Compare::create_revision(name, CompareOp::Equal, created),
                        // Holds only for an empty range: whatever lies in it has a create revision.
                        Compare::create_revision(first.as_str(), CompareOp::Equal, 0).with_range(end.as_str()),
                    ])
                    .and_then([TxnOp::delete(name, None)])
                    .or_else([TxnOp::get(name, Some(GetOptions::new().with_keys_only()))]);
                link.kv()
                    .txn(Txn::new().and_then([tombstone(), TxnOp::txn(undo)]))
                    .await
            })
            .await?;
        let kept = answer.op_responses().into_iter().any(|response| match response {
            TxnOpResponse::Txn(undo) => Outcome::read(undo)
                .holder
                .is_some_and(|holder| holder.create_revision() == created),
            _ => false,
        });
        if kept {
            return Err(Failure::new(Class::Definite, ErrorKind::NotEmpty));
        }
        Ok(())
    }

    fn looks_like(&self, create: &Create, holder: &KeyValue) -> bool {
        let lease = create.mode.lease().map(|lease| signed(lease.0));
        self.ledger.lease_of(create.nonce).is_some()
            && lease == Some(holder.lease())
            && holder.value() == create.value.as_ref()
    }
}

// === impl Outcome ===

impl Outcome {
    fn of(answer: TxnResponse) -> Outcome {
        if answer.succeeded() {
            return Outcome {
                answer,
                holder: None,
                record: None,
                parents: Vec::new(),
            };
        }
        Outcome::read(answer)
    }

    /// The entry, the record and the parents, in the order in which they were asked for.
    fn read(answer: TxnResponse) -> Outcome {
        let mut gets = answer.op_responses().into_iter().map(|response| match response {
            TxnOpResponse::Get(mut get) => get.take_kvs().pop(),
            _ => None,
        });
        Outcome {
            holder: gets.next().flatten(),
            record: gets.next().flatten(),
            parents: gets.flatten().collect(),
            answer,
        }
    }
}

impl Revision for Outcome {
    fn header(&self) -> Option<&ResponseHeader> {
        self.answer.header()
    }

    fn refused(&self) -> bool {
        // A record settles it: it tells what became of this create, whichever copy it was.
        !self.answer.succeeded() && self.record.is_none()
    }
}

/// An empty, persistent parent where there is none; one that is there stays untouched.
fn make_missing(parent: &str) -> Txn {
    Txn::new()
        .when([Compare::create_revision(parent, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(parent, "", None)])
}

fn error(create: &Create, kind: ErrorKind) -> Error {
    Error::definite(Operation::Create, Some(&create.key), kind)
}

fn revision(header: Option<&ResponseHeader>) -> u64 {
    header.map_or(0, |header| unsigned(header.revision()))
}
