//! What is unrelated costs nothing: one create in an empty store, beside 100,000 other keys, and beside 10,000 watchers
//! of other keys. Ends with the ratios, and fails if one is above 1.5.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_api::{Coordinator, CoordinatorExt, Env, Expect, Key, Target, Watch};
use coord_mem::{MemClient, MemStore};
use criterion::{Criterion, Throughput};
use tokio::runtime::Runtime;

const KEYS: u32 = 100_000;
const WATCHERS: u32 = 10_000;
const LIMIT: f64 = 1.5;
const ROUNDS: u32 = 41;
const CREATES_PER_ROUND: u32 = 4_000;

/// A store with something in it, and the client that creates beside it.
struct Scene {
    name: &'static str,
    client: Arc<MemClient>,
    fresh: Vec<Key>,
    _watches: Vec<Watch>,
}

impl Scene {
    fn new(name: &'static str) -> Scene {
        let store = MemStore::new(&Env::system());
        let fresh = (0..CREATES_PER_ROUND).map(|number| key(&format!("/jobs/new-{number}")));
        Scene {
            name,
            client: store.client(),
            fresh: fresh.collect(),
            _watches: Vec::new(),
        }
    }

    async fn with_siblings(self) -> Scene {
        for number in 0..KEYS {
            let key = key(&format!("/jobs/other-{number}"));
            self.client.create_persistent(&key, "value").await.unwrap();
        }
        self
    }

    async fn with_keys_elsewhere(self) -> Scene {
        for number in 0..KEYS {
            let key = key(&format!("/elsewhere-{}/other-{number}", number % 100));
            self.client.create_persistent(&key, "value").await.unwrap();
        }
        self
    }

    async fn with_watchers(mut self) -> Scene {
        for number in 0..WATCHERS {
            let key = key(&format!("/jobs/other-{number}"));
            let target = if number % 2 == 0 {
                Target::Key(key)
            } else {
                Target::Children(key)
            };
            self._watches.push(self.client.watch(&target).await.unwrap());
        }
        self
    }

    /// What one create takes, averaged over a round; the deletes that make room for the next round do not count.
    async fn round(&self) -> Duration {
        let started = Instant::now();
        for key in &self.fresh {
            self.client.create_persistent(key, "value").await.unwrap();
        }
        let took = started.elapsed();
        for key in &self.fresh {
            self.client.delete(key, Expect::Any).await.unwrap();
        }
        took / CREATES_PER_ROUND
    }
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let scenes = runtime.block_on(async {
        [
            Scene::new("in an empty store"),
            Scene::new("beside 100,000 keys elsewhere").with_keys_elsewhere().await,
            Scene::new("beside 100,000 siblings").with_siblings().await,
            Scene::new("beside 10,000 watchers of other keys").with_watchers().await,
        ]
    });
    let mut criterion = Criterion::default().configure_from_args().sample_size(30);
    compare_with_criterion(&mut criterion, &runtime, &scenes);
    criterion.final_summary();
    report_ratios(&runtime, &scenes)
}

fn compare_with_criterion(criterion: &mut Criterion, runtime: &Runtime, scenes: &[Scene]) {
    let mut group = criterion.benchmark_group("create");
    group.throughput(Throughput::Elements(1));
    for scene in scenes {
        group.bench_function(scene.name, |bencher| {
            bencher.to_async(runtime).iter_custom(|creates| async move {
                let rounds = creates.div_ceil(u64::from(CREATES_PER_ROUND));
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    total += scene.round().await;
                }
                total.mul_f64(creates as f64 / rounds as f64)
            });
        });
    }
    group.finish();
}

/// Round by round in turn, so that a busy machine slows all scenes down alike; the median of each.
fn report_ratios(runtime: &Runtime, scenes: &[Scene]) -> ExitCode {
    let mut times = vec![Vec::new(); scenes.len()];
    for _ in 0..ROUNDS {
        for (scene, times) in scenes.iter().zip(&mut times) {
            times.push(runtime.block_on(scene.round()));
        }
    }
    let medians: Vec<_> = times.iter_mut().map(|times| median(times)).collect();
    let mut code = ExitCode::SUCCESS;
    for (scene, median) in scenes.iter().zip(&medians) {
        let ratio = median.as_secs_f64() / medians[0].as_secs_f64();
        println!(
            "create {:38} {median:>10.1?}  x {ratio:.2}  (limit {LIMIT})",
            scene.name
        );
        if ratio > LIMIT {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
