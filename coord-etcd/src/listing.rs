use std::sync::Arc;

use coord_api::{Entry, Key};
use etcd_client::GetOptions;

use crate::failure::{Failure, Reason};
use crate::keyspace::{Keyspace, signed, unsigned};
use crate::pool::{Call, Link, Pool};

/// Pages hold about this much, as far as the page before lets one guess.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
const FIRST_PAGE: usize = 256;
const LARGEST_PAGE: usize = 4096;
const SMALLEST_PAGE: usize = 8;

/// The children of a key by name, all at one revision, and that revision.
///
/// etcd has no levels: the range below a key holds grandchildren too. A page that ends among them is followed by one
/// that begins behind them.
pub(crate) async fn children(
    pool: &Pool,
    space: &Keyspace,
    key: &Key,
    call: Call,
) -> Result<(Vec<Entry>, u64), Failure> {
    loop {
        match children_at_once(pool, space, key, call).await {
            // The revision of the first page was compacted before the last one was read: begin again.
            Err(failure) if failure.reason == Reason::Compacted && pool.env.now() < call.deadline() => {}
            done => return done,
        }
    }
}

async fn children_at_once(
    pool: &Pool,
    space: &Keyspace,
    key: &Key,
    mut call: Call,
) -> Result<(Vec<Entry>, u64), Failure> {
    let (first, end) = space.below(key);
    let mut children = Vec::new();
    let (mut from, mut limit, mut revision) = (first.clone().into_bytes(), FIRST_PAGE, 0);
    loop {
        let (start, end) = (&from, end.as_str());
        let mut page = pool
            .call(call, |link: Arc<Link>| async move {
                let options = GetOptions::new()
                    .with_range(end)
                    .with_limit(i64::try_from(limit).unwrap_or(i64::MAX))
                    .with_revision(signed(revision));
                link.kv().get(start.as_slice(), Some(options)).await
            })
            .await?;
        if revision == 0 {
            revision = page.header().map_or(0, |header| unsigned(header.revision()));
            // The pages that follow show this revision, whoever answers.
            call.at_least = 0;
        }
        let (more, kvs) = (page.more(), page.take_kvs());
        let next = kvs.last().map(|last| after(last.key(), first.len()));
        let (read, bytes) = (
            kvs.len(),
            kvs.iter().map(|kv| kv.value().len() + kv.key().len()).sum::<usize>(),
        );
        let before = children.len();
        let immediate =
            |kv: &etcd_client::KeyValue| !kv.key().get(first.len()..).is_none_or(|name| name.contains(&b'/'));
        children.extend(kvs.into_iter().filter(immediate).filter_map(|kv| space.entry(kv)));
        match next {
            Some(next) if more => from = next,
            _ => return Ok((children, revision)),
        }
        let useful = children.len() - before;
        limit = match useful * 4 < read {
            true => (useful * 2).max(SMALLEST_PAGE),
            false => (PAGE_BYTES / (bytes / read.max(1)).max(1)).clamp(SMALLEST_PAGE, LARGEST_PAGE),
        };
    }
}

/// Where to go on after `last`: at the next name, or behind all that lies below the child that it belongs to.
fn after(last: &[u8], dir: usize) -> Vec<u8> {
    let name = last.get(dir..).unwrap_or_default();
    match name.iter().position(|&byte| byte == b'/') {
        // `0` follows `/`.
        Some(slash) => [&last[..dir + slash], b"0"].concat(),
        None => [last, b"\0"].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_are_leapt_over() {
        assert_eq!(after(b"/a/b", 3), b"/a/b\0");
        assert_eq!(after(b"/a/b/c/d", 3), b"/a/b0");
    }
}
