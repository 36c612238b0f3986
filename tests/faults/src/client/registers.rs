use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::Env;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;

use super::recorder::Recorder;
use super::{BLIND, CHAINED, ClientConfig, KEYS, Phase, is_quiet};
use crate::history::{Held, Op, Outcome, Value};

/// How long the same keys are written without conditions: each unknown outcome there doubles what may have happened.
const ERA: Duration = Duration::from_secs(6);

/// Whoever can do it to a store.
#[async_trait]
pub(super) trait Performer: Send + Sync + 'static {
    async fn perform(&self, op: &Op) -> Outcome;

    /// Whether it can undo a create of unknown outcome.
    fn can_abandon(&self) -> bool;

    /// Whether it can tell an entry from another one made after a delete.
    fn can_delete(&self) -> bool;
}

/// One caller after the other's answer: reads and writes of a few keys.
pub(super) struct Registers {
    recorder: Recorder,
    store: Arc<dyn Performer>,
    random: StdRng,
    pause: Duration,
    prefix: &'static str,
    /// What was seen last.
    known: BTreeMap<String, Held>,
    next: u64,
}

impl Registers {
    pub(super) fn new(config: &ClientConfig, worker: u64, recorder: Recorder, store: Arc<dyn Performer>) -> Registers {
        let caller = config.incarnation * 16 + worker;
        Registers {
            recorder,
            store,
            random: StdRng::seed_from_u64(config.seed ^ (caller << 32)),
            pause: config.pause,
            prefix: if config.bare { "/bare" } else { "" },
            known: BTreeMap::new(),
            next: caller << 32,
        }
    }

    pub(super) async fn run(mut self, env: Env, phases: watch::Receiver<Phase>) {
        while !is_quiet(&phases) {
            let era = env.now().since_start().as_millis() / ERA.as_millis();
            let op = if self.random.random_bool(0.7) {
                self.chained()
            } else {
                self.blind(era)
            };
            let outcome = self.call(&op).await;
            if let (Op::Create { key, value }, Outcome::Unknown { .. }) = (op, outcome)
                && self.store.can_abandon()
                && self.random.random_bool(0.5)
            {
                self.call(&Op::Abandon { key, value }).await;
            }
            let pause = self.pause.mul_f64(self.random.random_range(0.5..1.5));
            env.sleep(pause).await;
        }
    }

    /// On the keys that are watched: nothing is written over that was not read.
    fn chained(&mut self) -> Op {
        let key = format!("{}{CHAINED}/k{}", self.prefix, self.random.random_range(0..KEYS));
        let known = self.known.get(&key).cloned();
        let expected = known.as_ref().map(|known| known.version.clone());
        match (self.random.random_range(0..100), &known) {
            (0..15, _) => Op::Get { key },
            (15..35, _) => Op::GetLatest { key },
            (35..42, Some(_)) if self.store.can_delete() => Op::Delete { key, expected },
            (_, Some(known)) => {
                let n = known.value().n + 1;
                let value = self.value(n);
                Op::Update { key, value, expected }
            }
            (_, None) => {
                let value = self.value(0);
                Op::Create { key, value }
            }
        }
    }

    fn blind(&mut self, era: u128) -> Op {
        let key = format!("{}{BLIND}/e{era}-{}", self.prefix, self.random.random_range(0..2));
        let value = self.value(0);
        match self.random.random_range(0..100) {
            0..45 => Op::GetLatest { key },
            45..70 => Op::Create { key, value },
            70..92 => Op::Update {
                key,
                value,
                expected: None,
            },
            _ if self.store.can_delete() => Op::Delete { key, expected: None },
            _ => Op::GetLatest { key },
        }
    }

    async fn call(&mut self, op: &Op) -> Outcome {
        let store = self.store.clone();
        let doing = async { (store.perform(op).await, ()) };
        let (outcome, ()) = self.recorder.call(op.clone(), doing).await;
        let now = match (op, &outcome) {
            (_, Outcome::Found { held: Some(held) } | Outcome::Taken { held }) => Some(held.clone()),
            (
                Op::Create { value, .. } | Op::Update { value, .. },
                Outcome::Done {
                    made: Some((version, created)),
                },
            ) => Some(Held {
                value: value.clone(),
                version: version.clone(),
                created: *created,
            }),
            _ => None,
        };
        match now {
            Some(held) => self.known.insert(op.key().to_owned(), held),
            None => self.known.remove(op.key()),
        };
        outcome
    }

    fn value(&mut self, n: u64) -> String {
        self.next += 1;
        let uid = self.next;
        Value { uid, n, token: 0 }.to_string()
    }
}
