use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coord_api::{Election, ElectionConfig, InvalidKey, Key, Recipe, Session, Task, Term, Unelected, margin};
use futures::FutureExt;

use super::ours::Ours;
use super::recorder::Recorder;
use super::registers::Performer;
use super::{ClientConfig, ELECTIONS, FENCED, nanos};
use crate::history::{Leadership, Lost, Op, Outcome, Value, What};

/// How often a leader looks whether it is valid; every second time it writes.
const LOOK: Duration = Duration::from_millis(60);
/// The deadline of a leader's writes: less than it has to stop.
const WRITE: Duration = Duration::from_millis(200);

/// A candidate and its work.
pub(super) struct Candidate {
    election: Arc<Election>,
    work: Task,
}

impl Candidate {
    pub(super) async fn close(self) {
        self.election.close().await;
        self.work.join().await;
    }
}

/// A candidate of each election.
pub(super) fn start(
    config: &ClientConfig,
    session: &Session,
    recorder: &Recorder,
) -> Result<Vec<Candidate>, InvalidKey> {
    let mut candidates = vec![];
    for (number, (key, recipe)) in ELECTIONS.into_iter().zip([Recipe::Cas, Recipe::Sequence]).enumerate() {
        recorder.say(What::Campaigns {
            election: key.to_owned(),
        });
        let election = Arc::new(Election::new(
            session,
            ElectionConfig {
                recipe,
                ..ElectionConfig::new(Key::new(key)?, &config.who)
            },
        ));
        let leader = Leader {
            session: session.clone(),
            recorder: recorder.clone(),
            election: key,
            store: Arc::new(Ours::new(session.coordinator().within(WRITE))),
            longest: config.longest_term,
            next: Arc::new(AtomicU64::new((config.incarnation * 16 + 8 + number as u64) << 32)),
        };
        let running = election.clone();
        let env = session.coordinator().env();
        let work = env.spawn(async move {
            let ended = running.run_while_leader(|term| leader.clone().lead(term)).await;
            if let Err(error) = ended {
                leader.recorder.note(format!("{key}: {error}"));
            }
        });
        candidates.push(Candidate { election, work });
    }
    Ok(candidates)
}

#[derive(Clone)]
struct Leader {
    session: Session,
    recorder: Recorder,
    election: &'static str,
    store: Arc<Ours>,
    longest: Duration,
    next: Arc<AtomicU64>,
}

impl Leader {
    async fn lead(self, term: Term) -> ControlFlow<()> {
        let env = self.session.coordinator().env().clone();
        let enough = env.now() + self.longest / 4 + env.random_duration(self.longest * 3 / 4);
        let lease = self.session.lease();
        let leadership = Leadership {
            election: self.election.to_owned(),
            token: term.token(),
            lease: lease.map_or(0, |lease| lease.lease.0),
        };
        self.recorder.say(What::Elected(leadership.clone()));
        let margin = margin(lease.map_or(Duration::ZERO, |lease| lease.ttl));
        let mut round = 0_u64;
        while !term.is_stopped() && env.now() < enough {
            let (asked, until) = (self.recorder.now(), nanos((term.valid_until() - margin).since_start()));
            if term.is_valid() {
                let (leadership, until) = (leadership.clone(), until.max(asked));
                self.recorder.say(What::Valid { leadership, until });
            }
            if round.is_multiple_of(2) && !self.write(term.token()).await {
                break;
            }
            round += 1;
            // Told at once: what others do next must not seem to overlap.
            if env.timeout_at(env.now() + LOOK, term.lost()).await.is_some() {
                break;
            }
        }
        let lost = term.lost().now_or_never().map(|reason| match reason {
            Unelected::Deleted => Lost::Deleted,
            _ => Lost::Otherwise,
        });
        self.recorder.say(What::Ended { leadership, lost });
        ControlFlow::Continue(())
    }

    /// Writes to the fenced register, unless a newer leader has. False: one has.
    async fn write(&self, token: u64) -> bool {
        let key = format!("{FENCED}{}", &self.election["/elections".len()..]);
        let Outcome::Found { held } = self.call(Op::GetLatest { key: key.clone() }).await else {
            return true;
        };
        let uid = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let op = match held {
            None => Op::Create {
                key,
                value: Value { uid, n: 0, token }.to_string(),
            },
            Some(held) if held.value().token > token => return false,
            Some(held) => Op::Update {
                key,
                value: Value {
                    uid,
                    n: held.value().n + 1,
                    token,
                }
                .to_string(),
                expected: Some(held.version),
            },
        };
        self.call(op).await;
        true
    }

    async fn call(&self, op: Op) -> Outcome {
        let doing = async { (Performer::perform(&*self.store, &op).await, ()) };
        self.recorder.call(op.clone(), doing).await.0
    }
}
