use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use coord_api::{Class, Coordinator, Create, CreateMode, Error, ErrorKind, Expect, Key};

use super::recorder::held;
use super::registers::Performer;
use crate::history::{Op, Outcome};

/// The registers through one of our drivers.
#[derive(Debug)]
pub(super) struct Ours {
    coordinator: Arc<dyn Coordinator>,
    /// Creates of unknown outcome by their value.
    open: Mutex<BTreeMap<String, Create>>,
}

impl Ours {
    pub(super) fn new(coordinator: Arc<dyn Coordinator>) -> Ours {
        Ours {
            coordinator,
            open: Mutex::default(),
        }
    }

    async fn perform(&self, op: &Op) -> Result<Outcome, Error> {
        let store = &self.coordinator;
        Ok(match op {
            Op::GetLatest { key } => Outcome::Found {
                held: store.get_latest(&to_key(key)).await?.as_ref().map(held),
            },
            Op::Get { key } => Outcome::Found {
                held: store.get(&to_key(key)).await?.as_ref().map(held),
            },
            Op::Create { key, value } => {
                let create = Create::new(store.env(), to_key(key), value.clone(), CreateMode::Persistent);
                let made = store.create(&create).await;
                if matches!(&made, Err(error) if error.is_unknown()) {
                    let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                    open.insert(value.clone(), create);
                }
                match made? {
                    entry if entry.value == value.as_bytes() => done(&entry),
                    // An earlier copy of it has made the entry, and somebody has written to it since: what it was made
                    // with, this answer does not tell.
                    _ => Outcome::Done { made: None },
                }
            }
            Op::Abandon { value, .. } => {
                let create = {
                    let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                    open.get(value).cloned()
                };
                if let Some(create) = create {
                    store.abandon(&create).await?;
                    self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(value);
                }
                Outcome::Done { made: None }
            }
            Op::Update { key, value, expected } => {
                let value = value.clone().into();
                done(&store.update(&to_key(key), value, expect(expected.as_deref())).await?)
            }
            Op::Delete { key, expected } => {
                store.delete(&to_key(key), expect(expected.as_deref())).await?;
                Outcome::Done { made: None }
            }
            Op::Sequential { .. } => Outcome::Refused {
                why: "made elsewhere".into(),
            },
        })
    }
}

#[async_trait]
impl Performer for Ours {
    async fn perform(&self, op: &Op) -> Outcome {
        Ours::perform(self, op).await.unwrap_or_else(failed)
    }

    fn can_abandon(&self) -> bool {
        true
    }

    fn can_delete(&self) -> bool {
        true
    }
}

/// How a failed call ended.
pub(super) fn failed(error: Error) -> Outcome {
    let why = error.to_string();
    match (error.class(), error.kind()) {
        (Class::NotSent, _) => Outcome::NotSent { why },
        (Class::Unknown, _) => Outcome::Unknown { why },
        (_, ErrorKind::AlreadyExists(holder)) => Outcome::Taken { held: held(holder) },
        (_, ErrorKind::NotFound) => Outcome::Missing,
        (_, ErrorKind::VersionMismatch(version)) => Outcome::Mismatch {
            version: version.map(|version| version.to_string()),
        },
        _ => Outcome::Refused { why },
    }
}

pub(super) fn done(entry: &coord_api::Entry) -> Outcome {
    Outcome::Done {
        made: Some((entry.version.to_string(), entry.created)),
    }
}

/// Of a key that we made up ourselves.
pub(super) fn to_key(key: &str) -> Key {
    Key::new(key).unwrap_or_else(|_| Key::root())
}

fn expect(version: Option<&str>) -> Expect {
    version
        .and_then(|version| version.parse().ok())
        .map_or(Expect::Any, Expect::Version)
}
