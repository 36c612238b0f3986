use std::sync::Arc;

use coord_api::{Bytes, Entry, Error, ErrorKind, Expect, Key, Operation, Result, Standing, driver};
use etcd_client::{
    Compare, CompareOp, GetOptions, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use crate::core::Core;
use crate::failure::Failure;
use crate::keyspace::{named, signed, unsigned};
use crate::listing;
use crate::pool::{Call, Link, Repeat};

/// etcd's word for "no limit".
const ALL: i64 = 0;

impl Core {
    pub(crate) async fn get(&self, key: &Key, call: Call) -> Result<Option<Entry>> {
        driver::check_entry_key(Operation::Get, key)?;
        let name = self.space.name(key);
        let name = name.as_str();
        let mut answer = self
            .pool
            .call(self.reading(call), |link: Arc<Link>| async move {
                link.kv().get(name, None).await
            })
            .await
            .map_err(|failure| failure.into_error(Operation::Get, Some(key)))?;
        Ok(answer.take_kvs().pop().map(|kv| named(key.clone(), kv)))
    }

    /// Together with a write that changes nothing: through the log, because a read alone can be stale while members
    /// pause and change leaders.
    pub(crate) async fn get_latest(&self, key: &Key, call: Call) -> Result<Option<Entry>> {
        driver::check_entry_key(Operation::GetLatest, key)?;
        let name = self.space.name(key);
        let name = name.as_str();
        let answer = self
            .pool
            .call(self.reading(call), |link: Arc<Link>| async move {
                let ops = [TxnOp::delete(self.space.nothing(), None), TxnOp::get(name, None)];
                link.kv().txn(Txn::new().and_then(ops)).await
            })
            .await
            .map_err(|failure| failure.into_error(Operation::GetLatest, Some(key)))?;
        Ok(found(&answer).pop().map(|kv| named(key.clone(), kv)))
    }

    pub(crate) async fn children(&self, key: &Key, call: Call) -> Result<Vec<Entry>> {
        listing::children(&self.pool, &self.space, key, self.reading(call))
            .await
            .map(|(entries, _)| entries)
            .map_err(|failure| failure.into_error(Operation::Children, Some(key)))
    }

    pub(crate) async fn update(&self, key: &Key, value: Bytes, expected: Expect, call: Call) -> Result<Entry> {
        driver::check_entry_key(Operation::Update, key)?;
        driver::check_value(Operation::Update, key, value.len(), &self.capabilities())?;
        let name = self.space.name(key);
        let (name, content) = (name.as_str(), &value);
        let answer = self
            .pool
            .call(call.repeat(repeat(expected)), |link: Arc<Link>| async move {
                let look = || TxnOp::get(name, Some(GetOptions::new().with_keys_only()));
                let put = TxnOp::put(name, content.as_ref(), Some(PutOptions::new().with_ignore_lease()));
                let txn = Txn::new()
                    .when(as_expected(name, expected))
                    .and_then([put, look()])
                    .or_else([look()]);
                link.kv().txn(txn).await
            })
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) if failure.may_have_crossed_the_quota() => {
                let now = self.get_latest(key, call).await;
                let untouched = matches!(now, Ok(Some(now)) if expected == Expect::Version(now.version));
                let failure = if untouched { failure } else { failure.unknown() };
                return Err(failure.into_error(Operation::Update, Some(key)));
            }
            Err(failure) => return Err(failure.into_error(Operation::Update, Some(key))),
        };
        let now = found(&answer).pop().map(|kv| named(key.clone(), kv));
        match now {
            Some(entry) if answer.succeeded() => Ok(Entry { value, ..entry }),
            now => Err(mismatch(Operation::Update, key, now)),
        }
    }

    pub(crate) async fn delete(&self, key: &Key, expected: Expect, call: Call) -> Result<()> {
        driver::check_entry_key(Operation::Delete, key)?;
        let name = self.space.name(key);
        let (first, end) = self.space.below(key);
        let (name, first, end) = (name.as_str(), first.as_str(), end.as_str());
        let answer = self
            .pool
            .call(call.repeat(repeat(expected)), |link: Arc<Link>| async move {
                // Holds only for an empty range: whatever lies in it has a create revision.
                let childless = Compare::create_revision(first, CompareOp::Equal, 0).with_range(end);
                let mut when = as_expected(name, expected);
                when.push(childless);
                let keys_only = || GetOptions::new().with_keys_only();
                let txn = Txn::new().when(when).and_then([TxnOp::delete(name, None)]).or_else([
                    TxnOp::get(name, Some(keys_only())),
                    TxnOp::get(first, Some(keys_only().with_range(end).with_limit(1))),
                ]);
                link.kv().txn(txn).await
            })
            .await
            .map_err(|failure| failure.into_error(Operation::Delete, Some(key)))?;
        if answer.succeeded() {
            return Ok(());
        }
        let mut there = found(&answer);
        let own = there
            .iter()
            .position(|kv| kv.key() == name.as_bytes())
            .map(|at| named(key.clone(), there.swap_remove(at)));
        match own {
            Some(own) if expected == Expect::Any || expected == Expect::Version(own.version) => {
                Err(Error::definite(Operation::Delete, Some(key), ErrorKind::NotEmpty))
            }
            own => Err(mismatch(Operation::Delete, key, own)),
        }
    }

    pub(crate) async fn standing(&self, entry: &Entry, call: Call) -> Result<Standing> {
        let key = &entry.key;
        driver::check_entry_key(Operation::Standing, key)?;
        let Some(parent) = key.parent() else {
            return Ok(Standing {
                own: None,
                predecessor: None,
            });
        };
        let (name, created) = (self.space.name(key), signed(entry.created));
        let (first, end) = self.space.sequential(&parent);
        let (name, first, end) = (name.as_str(), first.as_str(), end.as_str());
        let mut limit = 1;
        loop {
            let answer = self
                .pool
                .call(self.reading(call), |link: Arc<Link>| async move {
                    let before = GetOptions::new()
                        .with_range(end)
                        .with_max_create_revision(created - 1)
                        .with_sort(SortTarget::Create, SortOrder::Descend)
                        .with_limit(limit)
                        .with_keys_only();
                    let txn = Txn::new()
                        .when([Compare::create_revision(name, CompareOp::Equal, created)])
                        .and_then([TxnOp::get(name, None), TxnOp::get(first, Some(before))]);
                    link.kv().txn(txn).await
                })
                .await
                .map_err(|failure| failure.into_error(Operation::Standing, Some(key)))?;
            let mut found = found(&answer).into_iter();
            let own = found.next().map(|kv| named(key.clone(), kv));
            let (mut nearest, mut any) = (None, false);
            for kv in found {
                any = true;
                nearest = self.space.key(kv.key()).filter(|key| key.is_child_of(&parent));
                if nearest.is_some() {
                    break;
                }
            }
            // What others put there, or below such a name, is no sibling; but one may stand behind it. So look at all.
            if nearest.is_none() && any && limit != ALL {
                limit = ALL;
                continue;
            }
            return Ok(Standing {
                own,
                predecessor: nearest,
            });
        }
    }

    /// A read that is no older than anything this coordinator has seen.
    fn reading(&self, call: Call) -> Call {
        Call {
            at_least: self.pool.seen(),
            ..call.repeat(Repeat::Freely)
        }
    }
}

/// Everything that the reads of a transaction found, in order.
pub(crate) fn found(answer: &TxnResponse) -> Vec<KeyValue> {
    let responses = answer.op_responses().into_iter();
    responses
        .flat_map(|response| match response {
            TxnOpResponse::Get(mut get) => get.take_kvs(),
            _ => Vec::new(),
        })
        .collect()
}

/// A write on any version must not be sent twice: the second copy could hit what somebody wrote after the first.
fn repeat(expected: Expect) -> Repeat {
    match expected {
        Expect::Any => Repeat::Once,
        Expect::Version(_) => Repeat::Guarded,
    }
}

fn as_expected(name: &str, expected: Expect) -> Vec<Compare> {
    match expected {
        Expect::Any => vec![Compare::create_revision(name, CompareOp::Greater, 0)],
        Expect::Version(version) => {
            let (created, written) = version.parts();
            vec![
                Compare::create_revision(name, CompareOp::Equal, signed(created.max(1))),
                Compare::mod_revision(name, CompareOp::Equal, signed(written)),
            ]
        }
    }
}

fn mismatch(operation: Operation, key: &Key, now: Option<Entry>) -> Error {
    let kind = match now {
        None => ErrorKind::NotFound,
        Some(now) => ErrorKind::VersionMismatch(Some(now.version)),
    };
    Error::definite(operation, Some(key), kind)
}

/// Reads many keys in one request, at one revision.
pub(crate) async fn get_many(
    pool: &crate::pool::Pool,
    space: &crate::keyspace::Keyspace,
    keys: &[Key],
    call: Call,
) -> Result<(Vec<Option<Entry>>, u64), Failure> {
    let answer = pool
        .call(call, |link: Arc<Link>| async move {
            let gets: Vec<_> = keys.iter().map(|key| TxnOp::get(space.name(key), None)).collect();
            link.kv().txn(Txn::new().and_then(gets)).await
        })
        .await?;
    let revision = answer.header().map_or(0, |header| unsigned(header.revision()));
    let mut responses = answer.op_responses().into_iter();
    let entries = keys
        .iter()
        .map(|key| match responses.next() {
            Some(TxnOpResponse::Get(mut get)) => get.take_kvs().pop().map(|kv| named(key.clone(), kv)),
            _ => None,
        })
        .collect();
    Ok((entries, revision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coord_api::Version;

    #[test]
    fn only_versioned_writes_are_repeated() {
        assert_eq!(repeat(Expect::Any), Repeat::Once);
        assert_eq!(repeat(Version::new(1, 2).into()), Repeat::Guarded);
    }
}
