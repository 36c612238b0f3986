//! Each kind of fault meets each operation, from a script and from a seed.

use super::*;

const OPERATIONS: [Operation; 13] = [
    Operation::Grant,
    Operation::Renew,
    Operation::Revoke,
    Operation::Create,
    Operation::Abandon,
    Operation::Get,
    Operation::GetLatest,
    Operation::Children,
    Operation::Update,
    Operation::Delete,
    Operation::Standing,
    Operation::Watch,
    Operation::Close,
];

/// A client with something to work on, and one call of each operation.
struct Scene {
    client: Arc<MemClient>,
    lease: coord_api::LeaseId,
    entry: coord_api::Entry,
}

impl Scene {
    async fn new() -> Scene {
        let client = store().client();
        let lease = client.grant(TTL).await.unwrap().lease;
        let entry = client.create_sequential(&key("/dir"), "v", lease).await.unwrap();
        Scene { client, lease, entry }
    }

    async fn call(&self, operation: Operation) -> coord_api::Result<()> {
        let (client, name) = (&self.client, &self.entry.key);
        match operation {
            Operation::Grant => client.grant(TTL).await.map(drop),
            Operation::Renew => client.renew(self.lease).await.map(drop),
            Operation::Revoke => client.revoke(self.lease).await,
            Operation::Create => client.create(&create(client, "/x")).await.map(drop),
            Operation::Abandon => client.abandon(&create(client, "/x")).await,
            Operation::Get => client.get(name).await.map(drop),
            Operation::GetLatest => client.get_latest(name).await.map(drop),
            Operation::Children => client.children(&key("/dir")).await.map(drop),
            Operation::Update => client.update(name, "w".into(), Expect::Any).await.map(drop),
            Operation::Delete => client.delete(name, Expect::Any).await,
            Operation::Standing => client.standing(&self.entry).await.map(drop),
            Operation::Watch => client.watch(&Target::Key(name.clone())).await.map(drop),
            Operation::Close => client.close().await,
            other => unreachable!("{other} is not a call on a client"),
        }
    }

    /// What becomes of one call of this operation, and how long it takes.
    async fn meets(&self, operation: Operation) -> (Option<Class>, Duration) {
        let started = self.client.env().now();
        let class = self.call(operation).await.err().map(|error| error.class());
        (class, self.client.env().now() - started)
    }
}

/// Each kind that a single call can meet, with the odds that bring it from a seed.
fn kinds() -> [(Fault, Odds); 6] {
    let (none, late) = (Odds::default(), GiveUp::AtDeadline);
    [
        (Fault::NotSent, Odds { not_sent: 1.0, ..none }),
        (
            Fault::LoseRequest(late),
            Odds {
                lose_request: 1.0,
                ..none
            },
        ),
        (
            Fault::LoseAnswer(late),
            Odds {
                lose_answer: 1.0,
                ..none
            },
        ),
        (
            Fault::ArriveLate(late, SECOND),
            Odds {
                arrive_late: 1.0,
                ..none
            },
        ),
        (Fault::Delay(SECOND), Odds { delay: 1.0, ..none }),
        (
            Fault::DelayAnswer(SECOND),
            Odds {
                delay_answer: 1.0,
                ..none
            },
        ),
    ]
}

/// What the caller sees: the class of the error, if one.
fn seen(fault: Fault, operation: Operation) -> Option<Class> {
    match fault {
        Fault::NotSent => Some(Class::NotSent),
        Fault::LoseRequest(_) | Fault::LoseAnswer(_) | Fault::ArriveLate(..) if operation.is_read() => {
            Some(Class::NotSent)
        }
        Fault::LoseRequest(_) | Fault::LoseAnswer(_) | Fault::ArriveLate(..) => Some(Class::Unknown),
        Fault::Delay(_) | Fault::DelayAnswer(_) | Fault::Pass | Fault::EndLeaseEarly => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_operation_meets_each_fault_of_a_script() {
    for (fault, _) in kinds() {
        for operation in OPERATIONS {
            let scene = Scene::new().await;
            scene.client.faults().next(operation, fault);
            let (class, took) = scene.meets(operation).await;
            assert_eq!(class, seen(fault, operation), "{operation} under {fault:?}");
            let expected = match fault {
                Fault::NotSent => Duration::ZERO,
                Fault::Delay(slow) | Fault::DelayAnswer(slow) => slow,
                _ => scene.client.capabilities().call_deadline,
            };
            assert_eq!(took, expected, "{operation} under {fault:?}");
            assert_eq!(scene.client.faults().scripted(), 0, "{operation} under {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_operation_meets_each_fault_of_a_seed() {
    for (fault, odds) in kinds() {
        for operation in OPERATIONS {
            let scene = Scene::new().await;
            scene.client.faults().seeded(odds);
            let (class, took) = scene.meets(operation).await;
            assert_eq!(class, seen(fault, operation), "{operation} under {odds:?}");
            if matches!(fault, Fault::Delay(_) | Fault::DelayAnswer(_)) {
                assert!(took > Duration::ZERO && took < odds.longest, "{operation}: {took:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_early_comes_from_a_seed_too() {
    let options = StoreOptions {
        proof_lag: 3 * SECOND,
        ..StoreOptions::default()
    };
    let client = MemStore::with_options(&Env::simulated(7), options).client();
    client.faults().seeded(Odds {
        end_lease_early: 1.0,
        ..Odds::default()
    });
    let grant = client.grant(TTL).await.unwrap();
    client.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    client
        .env()
        .sleep_until(grant.valid_until - Duration::from_millis(1))
        .await;
    assert!(exists(&client, "/e").await);
    client.env().sleep_until(grant.valid_until).await;
    assert!(!exists(&client, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_gap_comes_from_a_seed_too() {
    let client = store().client();
    let mut watch = client.watch(&Target::Key(key("/x"))).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![]));
    client.faults().seeded(Odds {
        gap: 1.0,
        ..Odds::default()
    });
    client.get(&key("/elsewhere")).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::Resync(vec![]));
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_although_the_store_cannot_be_reached() {
    let cut = store().client();
    cut.faults().cut();
    coord_conformance::bad_input_is_refused_unsent(&*cut).await;
    let swallowing = store().client();
    swallowing.faults().swallow();
    let started = swallowing.env().now();
    coord_conformance::bad_input_is_refused_unsent(&*swallowing).await;
    // Only the close was sent, and had to be given up.
    assert_eq!(
        swallowing.env().now() - started,
        swallowing.capabilities().call_deadline
    );
}
