use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coordkit::{Coordinator, CoordinatorExt, Expect, Key, Result};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;

use super::{Samples, shown};
use crate::app::App;
use crate::cli::Global;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Latency and throughput of each operation of the contract
///
/// Latency is that of one call after the other; throughput that of many at the same time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord bench ops --store etcd://localhost:2379")]
pub(crate) struct Ops {
    /// How many calls of each operation, for each of the two
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// How many at the same time, for throughput
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    at_once: u16,
    /// The size of the values in bytes
    #[arg(long, default_value_t = 100)]
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    bench: &'static str,
    driver: &'static str,
    op: &'static str,
    count: u32,
    p50_us: u64,
    p99_us: u64,
    per_second: f64,
}

struct Place<'a> {
    ops: &'a Ops,
    app: &'a App,
    store: &'a Arc<dyn Coordinator>,
    top: &'a Key,
}

// === impl Ops ===

impl Ops {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let app = App::new(global, [])?;
        let store = app.connect()?;
        let name = format!("/bench-{}", store.env().nonce());
        let top = Key::new(name).map_err(Exit::failed)?;
        let place = Place {
            ops: &self,
            app: &app,
            store: &store,
            top: &top,
        };
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Err(Exit::failed("bench: stopped before its end")),
            result = place.measure_all() => result,
        };
        if let Err(error) = store.delete_recursive(&top).await
            && !error.is_not_found()
        {
            tracing::warn!("{top} is left in the store: {error}");
        }
        store.close().await.ok();
        result
    }
}

// === impl Place ===

impl Place<'_> {
    async fn measure_all(&self) -> Result<(), Exit> {
        let Place { ops, store, .. } = self;
        waiting::for_the_store(store, &self.app.config.store).await?;
        let value = vec![b'x'; ops.bytes];
        let value = || value.clone();
        store.create_persistent(self.top, "").await?;
        self.measure("create", async |key: Key| {
            store.create_persistent(&key, value()).await.map(drop)
        })
        .await?;
        self.measure("get", async |key: Key| store.get(&key).await.map(drop))
            .await?;
        self.measure("get_latest", async |key: Key| store.get_latest(&key).await.map(drop))
            .await?;
        self.measure("update", async |key: Key| {
            store.update(&key, value().into(), Expect::Any).await.map(drop)
        })
        .await?;
        self.measure("delete", async |key: Key| store.delete(&key, Expect::Any).await)
            .await?;
        self.renewals().await
    }

    /// Renewals of one lease follow each other; several at a time make no sense.
    async fn renewals(&self) -> Result<(), Exit> {
        let lease = self.store.grant(self.app.config.session.ttl).await?.lease;
        let mut samples = Samples::default();
        let env = self.store.env();
        let started = env.now();
        for _ in 0..self.ops.count {
            let from = env.now();
            self.store.renew(lease).await?;
            samples.add(env.now() - from);
        }
        let took = env.now() - started;
        self.store.revoke(lease).await?;
        self.tell("renew", samples, took).await
    }

    async fn measure(&self, op: &'static str, call: impl AsyncFn(Key) -> Result<()>) -> Result<(), Exit> {
        let env = self.store.env();
        let key = |row: &str, number: u32| self.top.child(format!("{row}{number}")).map_err(Exit::failed);
        let mut samples = Samples::default();
        for number in 0..self.ops.count {
            let key = key("one", number)?;
            let from = env.now();
            call(key).await?;
            samples.add(env.now() - from);
        }
        let keys: Vec<Key> = (0..self.ops.count)
            .map(|number| key("many", number))
            .collect::<Result<_, _>>()?;
        let started = env.now();
        futures::stream::iter(keys)
            .map(|key| Ok(call(key)))
            .try_buffer_unordered(usize::from(self.ops.at_once))
            .try_collect::<()>()
            .await?;
        self.tell(op, samples, env.now() - started).await
    }

    async fn tell(&self, op: &'static str, mut samples: Samples, took: Duration) -> Result<(), Exit> {
        let row = Row {
            bench: "ops",
            driver: self.store.capabilities().driver,
            op,
            count: self.ops.count,
            p50_us: samples.quantile_us(0.5),
            p99_us: samples.quantile_us(0.99),
            per_second: f64::from(self.ops.count) / took.as_secs_f64().max(1e-9),
        };
        let words = format!(
            "{op:<11} p50 {:>9}   p99 {:>9}   {:>9.0} /s",
            shown(row.p50_us),
            shown(row.p99_us),
            row.per_second
        );
        self.app.out.row(&row, words).await
    }
}
