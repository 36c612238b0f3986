//! Waiting for a condition with a deadline.

use std::{fmt::Display, future::Future, panic::Location, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

const POLL: Duration = Duration::from_millis(10);

/// What a check of [`eventually`] may answer: `bool`, `Option<T>` or `Result<T, E>`.
pub trait Condition {
    /// What [`eventually`] returns once the condition holds.
    type Output;

    /// The output if the condition holds, else why not (may be empty).
    fn met(self) -> Result<Self::Output, String>;
}

impl Condition for bool {
    type Output = ();

    fn met(self) -> Result<(), String> {
        self.then_some(()).met()
    }
}

impl<T> Condition for Option<T> {
    type Output = T;

    fn met(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: Display> Condition for Result<T, E> {
    type Output = T;

    fn met(self) -> Result<T, String> {
        self.map_err(|error| format!("; last answer: {error}"))
    }
}

/// Calls `check` every 10 ms until it is met and returns what it found. A check that hangs counts as not met.
///
/// # Panics
/// When `deadline` passes first; the message names `what`, the caller's line and, for a `Result`, the last error.
///
/// ```
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut tries = 0;
/// let found = coord_harness::eventually(Duration::from_secs(1), "the third try", || {
///     tries += 1;
///     let tries = tries;
///     async move { (tries == 3).then_some(tries) }
/// })
/// .await;
/// assert_eq!(found, 3);
/// # });
/// ```
#[track_caller]
pub fn eventually<C, F, Fut>(deadline: Duration, what: &str, mut check: F) -> impl Future<Output = C::Output>
where
    C: Condition,
    F: FnMut() -> Fut,
    // Not `AsyncFnMut`: with that, the compiler cannot see that a spawned task which waits here is `Send`.
    Fut: Future<Output = C>,
{
    let caller = Location::caller();
    async move {
        let end = Instant::now() + deadline;
        let mut reason = String::new();
        loop {
            match timeout_at(end, check()).await {
                Ok(answer) => match answer.met() {
                    Ok(output) => return output,
                    Err(why) => reason = why,
                },
                Err(_) => reason.push_str("; the last check did not answer"),
            }
            if Instant::now() >= end {
                panic!("{caller}: not within {deadline:?}: {what}{reason}");
            }
            sleep(POLL).await;
        }
    }
}
