//! One connection per endpoint, health per connection, and calls that fail over and hedge.

mod call;
mod endpoint;
mod marked;

pub(crate) use call::{Call, Repeat, Revision};
pub(crate) use endpoint::{Endpoint, Link};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use coord_api::{Env, Result, Task};
use etcd_client::GetOptions;
use tokio::sync::Notify;

use crate::EtcdConfig;
use crate::keyspace::Keyspace;
use coord_api::Operation;

/// A second endpoint is asked when the first has not answered after this time, or four times the usual.
const HEDGE: Duration = Duration::from_millis(60);
const LONGEST_HEDGE: Duration = Duration::from_secs(1);
/// How often endpoints under suspicion are probed, and how long they have.
const PROBE_EVERY: Duration = Duration::from_millis(500);
const PROBE_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) env: Env,
    endpoints: Vec<Endpoint>,
    /// The endpoint to ask first.
    preferred: AtomicUsize,
    /// How long answers usually take, in microseconds, averaged.
    usual: AtomicU64,
    /// The highest revision that any answer has shown: no read may show an older state to those who ask later.
    seen: AtomicU64,
    suspicion: Notify,
    /// A name that is never there, for probes.
    nothing: String,
}

impl Pool {
    pub(crate) fn open(config: &EtcdConfig, env: Env, space: &Keyspace) -> Result<Arc<Pool>> {
        let endpoints = config
            .transports()?
            .into_iter()
            .map(|transport| Endpoint::new(transport, config.credentials()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|failure| failure.into_error(Operation::Open, None))?;
        let first = usize::try_from(env.random_u64() % endpoints.len() as u64).unwrap_or(0);
        Ok(Arc::new(Pool {
            env,
            endpoints,
            preferred: AtomicUsize::new(first),
            usual: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            suspicion: Notify::new(),
            nothing: space.nothing(),
        }))
    }

    pub(crate) fn endpoint(&self, index: usize) -> &Endpoint {
        &self.endpoints[index]
    }

    /// All endpoints in the order in which to ask them: those under suspicion last.
    pub(crate) fn order(&self) -> Vec<usize> {
        let (count, first) = (self.endpoints.len(), self.preferred.load(Ordering::Relaxed));
        let mut order: Vec<usize> = (0..count).map(|step| (first + step) % count).collect();
        if count > 1 {
            order.sort_by_key(|&index| self.endpoints[index].is_suspect());
        }
        order
    }

    pub(crate) fn suspect(&self, index: usize) {
        if self.endpoints[index].set_suspect(true) {
            tracing::debug!(endpoint = ?self.endpoints[index], "under suspicion");
            self.suspicion.notify_one();
        }
        let next = self.order()[0];
        let _ = self
            .preferred
            .compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn hedge(&self) -> Duration {
        Duration::from_micros(self.usual.load(Ordering::Relaxed) * 4).clamp(HEDGE, LONGEST_HEDGE)
    }

    fn took(&self, latency: Duration) {
        let usual = self.usual.load(Ordering::Relaxed);
        let latency = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX / 16);
        // A lost update of an average is no loss.
        self.usual.store((usual * 7 + latency) / 8, Ordering::Relaxed);
    }

    pub(crate) fn saw(&self, revision: u64) {
        if self.seen.load(Ordering::Acquire) < revision {
            self.seen.fetch_max(revision, Ordering::AcqRel);
        }
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Clears endpoints of suspicion when they answer again, and quickly. Ends with its handle.
    pub(crate) fn spawn_prober(self: &Arc<Pool>) -> Task {
        let pool = self.clone();
        self.env.spawn(async move {
            loop {
                let suspects = || (0..pool.endpoints.len()).filter(|&index| pool.endpoints[index].is_suspect());
                if suspects().next().is_none() {
                    pool.suspicion.notified().await;
                }
                pool.env.sleep(PROBE_EVERY).await;
                futures::future::join_all(suspects().map(|index| pool.probe(index))).await;
            }
        })
    }

    async fn probe(&self, index: usize) {
        let (endpoint, start) = (&self.endpoints[index], self.env.now());
        let link = endpoint.link();
        let ask = async {
            link.login().await.map_err(|failure| failure.is_transient())?;
            let options = GetOptions::new().with_keys_only();
            match link.kv().get(self.nothing.as_str(), Some(options)).await {
                Ok(_) => Ok(()),
                Err(error) => Err(crate::failure::Failure::of(&error, true).is_transient()),
            }
        };
        match self.env.timeout_at(start + PROBE_LIMIT, ask).await {
            None => endpoint.relink(&link),
            // One that refuses us for a reason of its own answers, and that is what was asked.
            Some(Ok(()) | Err(false)) => {
                endpoint.hear(&self.env);
                if self.env.now() - start <= self.hedge() && endpoint.set_suspect(false) {
                    tracing::debug!(?endpoint, "answers again");
                }
            }
            Some(Err(true)) => {}
        }
    }
}
