//! Whatever is awaited may be dropped at any moment: nothing is left behind, and nothing runs on.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use coord_api::Term;
use coord_mem::Odds;

use crate::stage::{Actor, Stage, TTL, with_both};

/// Every request and every answer takes a while, so that each of them is a moment to be dropped at.
const SLOW: Odds = Odds {
    delay: 0.5,
    delay_answer: 0.5,
    longest: Duration::from_millis(40),
    not_sent: 0.0,
    lose_request: 0.0,
    lose_answer: 0.0,
    arrive_late: 0.0,
    end_lease_early: 0.0,
    gap: 0.0,
};
const SOON: Duration = Duration::from_secs(1);

/// The output of `future`, or nothing once it was polled so often: then it is dropped where it stands.
async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let (mut future, mut left) = (Box::pin(future), times);
    poll_fn(move |context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Nothing is at the store, although the lease lives on: it was removed, and did not merely end.
async fn nothing_is_left(stage: &Stage, actor: &Actor, times: usize) {
    actor.faults.clear();
    stage.env.sleep(TTL * 2).await;
    let entries = stage.entries().await;
    assert_eq!(entries, [], "{:?}, dropped after {times} polls", stage.recipe);
    assert!(actor.session.lease().is_some_and(|lease| lease.epoch == 1));
}

#[test]
fn a_campaign_may_be_dropped_at_any_await() {
    with_both(async |stage| {
        let a = stage.actor("a");
        for times in 1.. {
            a.faults.seeded(SLOW);
            let led = polled(times, a.election.campaign()).await;
            let elected = led.is_some();
            drop(led);
            nothing_is_left(&stage, &a, times).await;
            if elected {
                assert!(times >= 3, "there was something to be dropped at");
                return;
            }
        }
    });
}

#[test]
fn a_waiting_campaign_may_be_dropped_at_any_await() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        for times in 1.. {
            let first = b.lead().await;
            let (env, leave) = (stage.env.clone(), Duration::from_millis(300));
            let leaving = stage.env.spawn(async move {
                env.sleep(leave).await;
                first.resign().await
            });
            a.faults.seeded(SLOW);
            let soon = a.env.now() + SOON;
            let led = a.env.timeout_at(soon, polled(times, a.election.campaign())).await;
            let elected = led.flatten().is_some();
            leaving.join().await.unwrap().unwrap();
            nothing_is_left(&stage, &a, times).await;
            if elected {
                assert!(times > 5, "there was something to be dropped at");
                return;
            }
        }
    });
}

#[test]
fn a_resignation_may_be_dropped_at_any_await() {
    with_both(async |stage| {
        let a = stage.actor("a");
        for times in 1.. {
            let leadership = a.lead().await;
            a.faults.seeded(SLOW);
            let resigned = polled(times, leadership.resign()).await.is_some();
            nothing_is_left(&stage, &a, times).await;
            if resigned {
                return;
            }
        }
    });
}

/// Says when it is dropped whether its leadership still stood.
struct Working(Term, Arc<Mutex<Vec<bool>>>);

impl Drop for Working {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0.is_valid());
    }
}

#[test]
fn work_that_is_dropped_is_gone_before_its_entry() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let ended = Arc::new(Mutex::new(vec![]));
        for times in 1..40 {
            a.faults.seeded(SLOW);
            let run = a.election.run_while_leader(|term| {
                let working = Working(term, ended.clone());
                let env = a.env.clone();
                async move {
                    for _ in 0..5 {
                        env.sleep(Duration::from_millis(10)).await;
                    }
                    drop(working);
                    ControlFlow::Break(())
                }
            });
            polled(times, run).await;
            nothing_is_left(&stage, &a, times).await;
        }
        let ended = ended.lock().unwrap();
        assert!(ended.len() > 20 && ended.iter().all(|valid| *valid), "{ended:?}");
    });
}

#[test]
fn a_proclamation_may_be_dropped_at_any_await() {
    with_both(async |stage| {
        let a = stage.actor("a");
        for times in 1.. {
            let mut leadership = a.lead().await;
            a.faults.seeded(SLOW);
            let proclaimed = polled(times, leadership.proclaim("something")).await.is_some();
            assert!(leadership.is_valid());
            // What is written late, or was written without an answer, is resigned like everything else.
            drop(leadership);
            nothing_is_left(&stage, &a, times).await;
            if proclaimed {
                return;
            }
        }
    });
}

/// Work is often done on threads that know of no runtime.
#[test]
fn a_term_answers_and_a_leadership_is_released_on_whatever_thread() {
    with_both(async |stage| {
        let a = stage.actor("a");
        let leadership = a.lead().await;
        let (term, stop_at) = (leadership.term(), leadership.stop_at());
        let answers = std::thread::spawn(move || (term.is_valid(), term.is_stopped(), term.stop_at()));
        assert_eq!(answers.join().unwrap(), (true, false, stop_at));
        std::thread::spawn(move || drop(leadership)).join().unwrap();
        nothing_is_left(&stage, &a, 0).await;
        // A campaign, too, wherever it is when it is dropped.
        let (_first, election) = (a.lead().await, a.election.clone());
        let mut campaign = Box::pin(async move { election.campaign().await });
        let soon = a.env.now() + SOON;
        assert!(a.env.timeout_at(soon, &mut campaign).await.is_none());
        std::thread::spawn(move || drop(campaign)).join().unwrap();
        stage.env.sleep(TTL * 2).await;
        assert_eq!(stage.entries().await.len(), 1, "only the leader's");
    });
}

#[test]
fn no_task_outlives_what_it_was_for() {
    with_both(async |stage| {
        let (a, b) = (stage.actor("a"), stage.actor("b"));
        let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        stage.moment().await;
        let before = alive();
        for round in 0..20 {
            let leadership = a.lead().await;
            let (observer, events) = (a.election.observe(), b.election.events());
            drop(polled(1 + round % 7, b.election.campaign()).await);
            let waiting = b.campaign();
            stage.moment().await;
            drop(waiting);
            if round % 2 == 0 {
                drop(leadership);
            } else {
                leadership.resign().await.unwrap();
            }
            drop((observer, events));
        }
        stage.moment().await;
        assert_eq!(alive(), before, "{:?}", stage.recipe);
    });
}

#[test]
fn handles_dropped_in_any_order_leave_nothing() {
    with_both(async |stage| {
        for order in 0..3 {
            let actor = stage.actor("a");
            let leadership = actor.lead().await;
            let (term, Actor { election, session, .. }) = (leadership.term(), actor);
            match order {
                0 => drop((election, session, leadership)),
                1 => drop((leadership, session, election)),
                _ => drop((session, leadership, election)),
            }
            assert!(!term.is_valid() && term.is_stopped());
            stage.moment().await;
            assert_eq!(stage.entries().await, []);
        }
    });
}
