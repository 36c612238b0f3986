use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Holds all futures behind it while it is closed.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    closed: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    pub(super) fn open(&self) {
        let waiting = {
            let mut state = self.lock();
            state.closed = false;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn guard<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let gate = self.clone();
        async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                {
                    let mut state = gate.lock();
                    if state.closed {
                        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                            state.waiting.push(context.waker().clone());
                        }
                        return Poll::Pending;
                    }
                }
                future.as_mut().poll(context)
            })
            .await
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_holds_a_task_while_time_goes_on() {
        let gate = Gate::default();
        let started = tokio::time::Instant::now();
        let task = tokio::spawn(gate.guard(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            started.elapsed()
        }));
        tokio::task::yield_now().await;
        gate.close();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!task.is_finished());
        gate.open();
        assert_eq!(task.await.unwrap(), Duration::from_secs(5));
    }
}
