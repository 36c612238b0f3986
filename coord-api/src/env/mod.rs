mod clock;
mod gate;
mod instant;
mod task;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::Nonce;
use clock::Clock;
use gate::Gate;
pub use instant::Instant;
pub use task::Task;

/// Where time, randomness and tasks come from: one per coordinator, shared by its driver and all recipes on it.
///
/// [`Env::system`] is for production: its clock counts suspended time. [`Env::tokio`] follows tokio's clock, so that
/// `#[tokio::test(start_paused = true)]` lives through hours in milliseconds. [`Env::simulated`] adds randomness from
/// a seed; [`Env::pause`] and [`Env::jump`] do to one client what a stopped process and a suspended machine do.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use coord_api::Env;
///
/// let env = Env::tokio();
/// let start = env.now();
/// env.sleep(Duration::from_secs(3600)).await; // virtual: returns at once
/// assert!(env.now() - start >= Duration::from_secs(3600));
/// # }
/// ```
#[derive(Clone)]
pub struct Env(Arc<Inner>);

struct Inner {
    clock: Clock,
    random: Mutex<StdRng>,
    gate: Gate,
}

// === impl Env ===

impl Env {
    /// For production: a clock that counts suspended time (CLOCK_BOOTTIME on Linux) and notices a jump past a
    /// deadline within 250 ms although timers slept; randomness from the operating system.
    pub fn system() -> Env {
        Env::new(Clock::boot(), rand::rng().random())
    }

    /// Tokio's clock, for tests with paused time; randomness from the operating system.
    pub fn tokio() -> Env {
        Env::new(Clock::tokio(), rand::rng().random())
    }

    /// Tokio's clock counted from now, and randomness from `seed`: one seed, one history.
    pub fn simulated(seed: u64) -> Env {
        Env::new(Clock::simulated(), seed)
    }

    /// The environment of one more client of the same world: same time, its own randomness (derived from this one's),
    /// paused and made to jump on its own.
    pub fn child(&self) -> Env {
        Env::new(self.0.clock.child(), self.random_u64())
    }

    fn new(clock: Clock, seed: u64) -> Env {
        Env(Arc::new(Inner {
            clock,
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            gate: Gate::default(),
        }))
    }

    /// The instant now.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Waits until `deadline`; returns at once if it has passed.
    pub async fn sleep_until(&self, deadline: Instant) {
        self.0.clock.sleep_until(deadline).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }

    /// The output of `future`, or `None` if it is not there at `deadline`; the future is dropped then.
    pub async fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(deadline) => None,
        }
    }

    /// 64 random bits.
    pub fn random_u64(&self) -> u64 {
        self.with_random(|random| random.next_u64())
    }

    /// A random duration in `0..max`.
    pub fn random_duration(&self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(if nanos == 0 {
            0
        } else {
            self.with_random(|random| random.random_range(0..nanos))
        })
    }

    /// A nonce that no other create has.
    pub fn nonce(&self) -> Nonce {
        self.with_random(|random| Nonce(random.random()))
    }

    fn with_random<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a task that ends when its handle is dropped, and stands still while the environment is
    /// [paused](Env::pause). Must be called within a tokio runtime.
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Task::new(tokio::spawn(self.0.gate.guard(future)))
    }

    /// `future`, standing still while the environment is [paused](Env::pause): what [`spawn`](Env::spawn) does to
    /// tasks, for a future that is awaited in place.
    pub fn gated<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.0.gate.guard(future)
    }

    /// Stops all tasks of this environment, as SIGSTOP stops a process: time goes on, they do not. For tests.
    pub fn pause(&self) {
        self.0.gate.close();
    }

    /// Lets the tasks run on after [`pause`](Env::pause).
    pub fn resume(&self) {
        self.0.gate.open();
    }

    /// Moves this environment's clock ahead, as a machine that was suspended finds it: timers slept, time did not.
    /// Works on tokio's and simulated clocks, for tests; the system's clock cannot be moved.
    pub fn jump(&self, by: Duration) {
        self.0.clock.jump(by);
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("clock", &self.0.clock)
            .finish_non_exhaustive()
    }
}
