//! Dropping the future of a call at various points of its way.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use coord_api::Env;
use futures::poll;

/// How far a call may get before its future is dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// It is polled once.
    AtOnce,
    /// Other tasks have had so many turns.
    AfterTurns(u32),
    /// So much time has passed.
    After(Duration),
}

impl Cut {
    /// From "hardly begun" to "probably at the store, and the answer under way".
    pub(crate) const POINTS: [Cut; 8] = [
        Cut::AtOnce,
        Cut::AfterTurns(1),
        Cut::AfterTurns(3),
        Cut::AfterTurns(10),
        Cut::AfterTurns(40),
        Cut::AfterTurns(150),
        Cut::After(Duration::from_millis(1)),
        Cut::After(Duration::from_millis(3)),
    ];

    /// The output of `call` if it was there before the cut; otherwise the call was dropped.
    pub(crate) async fn apply<F: Future>(self, env: &Env, call: F) -> Option<F::Output> {
        let mut call = pin!(call);
        match self {
            Cut::AtOnce => ready(poll!(call)),
            Cut::AfterTurns(turns) => {
                for _ in 0..turns {
                    if let Poll::Ready(output) = poll!(call.as_mut()) {
                        return Some(output);
                    }
                    tokio::task::yield_now().await;
                }
                ready(poll!(call))
            }
            Cut::After(time) => env.timeout_at(env.now() + time, call).await,
        }
    }
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
