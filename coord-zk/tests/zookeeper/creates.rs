//! Creates whose answer is lost, and creates that arrive late: neither a ghost nor a double.

use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Create, CreateMode, Expect, Key};
use coord_harness::{Proxy, ZkEnsemble, eventually};
use coord_zk::ZkConfig;

use crate::support::{self, HEAL, config, heals, keep, key, open};

const DEADLINE: Duration = Duration::from_millis(400);

struct Scene {
    _ensemble: ZkEnsemble,
    proxy: Proxy,
    /// Behind the proxy, with [`DEADLINE`].
    coordinator: Arc<dyn Coordinator>,
    /// The same one, whose calls have time.
    patient: Arc<dyn Coordinator>,
    /// Beside it.
    witness: Arc<dyn Coordinator>,
}

async fn scene() -> Scene {
    let ensemble = support::ensemble(1).await;
    let proxy = Proxy::start(ensemble.node(0).client_addr()).await;
    let patient = open(ZkConfig {
        call_deadline: HEAL,
        ..config(proxy.addr().to_string())
    });
    let coordinator = patient.within(DEADLINE);
    let witness = open(config(ensemble.connect_string()));
    heals(&coordinator).await;
    heals(&witness).await;
    Scene {
        _ensemble: ensemble,
        proxy,
        coordinator,
        patient,
        witness,
    }
}

impl Scene {
    /// One create of each kind, below a parent of its own, and a lease that is kept meanwhile.
    async fn creates(&self) -> (Vec<(Key, Create)>, coord_api::LeaseId, coord_api::Task) {
        let patient = self.coordinator.clone();
        let grant = eventually(HEAL, "a lease", async || patient.grant(Duration::from_secs(4)).await).await;
        let kept = keep(&self.coordinator, grant);
        let parent = key(&format!("/round-{}", self.coordinator.env().nonce()));
        let make = |name: &str, mode| {
            let folder = parent.child(name).unwrap();
            let at = match mode {
                CreateMode::Sequential(_) => folder.clone(),
                _ => folder.child("one").unwrap(),
            };
            (folder, Create::new(self.coordinator.env(), at, "x", mode))
        };
        let creates = vec![
            make("persistent", CreateMode::Persistent),
            make("ephemeral", CreateMode::Ephemeral(grant.lease)),
            make("sequential", CreateMode::Sequential(grant.lease)),
        ];
        (creates, grant.lease, kept)
    }

    /// Parents and guard of the create are there, as they are for most: it takes one request.
    async fn prepare(&self, folder: &Key, create: &Create) {
        heals(&self.patient).await;
        self.patient.create_persistent(folder, "").await.unwrap();
        if !matches!(create.mode, CreateMode::Sequential(_)) {
            self.patient.create_persistent(&create.key, "x").await.unwrap();
            self.patient.delete(&create.key, Expect::Any).await.unwrap();
        }
    }

    async fn entries(&self, folder: &Key) -> usize {
        self.witness.get_latest(folder).await.unwrap();
        self.witness.children(folder).await.unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_answer_is_lost_is_found_or_undone() {
    let scene = scene().await;
    for round in 0..4 {
        let (creates, lease, _kept) = scene.creates().await;
        scene.proxy.drop_answers();
        for (_, create) in &creates {
            let error = scene.coordinator.create(create).await.unwrap_err();
            assert!(error.is_unknown() || error.is_transient(), "{error:?}");
        }
        scene.proxy.pass();
        for (folder, create) in &creates {
            if round % 2 == 0 {
                let entry = eventually(HEAL, "found or made", async || scene.coordinator.create(create).await).await;
                assert_eq!(entry.lease, create.mode.lease());
                assert_eq!(scene.entries(folder).await, 1, "{create:?}");
            } else {
                eventually(HEAL, "undone", async || scene.coordinator.abandon(create).await).await;
                assert_eq!(scene.entries(folder).await, 0, "{create:?}");
                let again = eventually(HEAL, "an answer", async || {
                    let error = scene.coordinator.create(create).await.expect_err("it was abandoned");
                    error.is_definite().then_some(error)
                })
                .await;
                assert_eq!(*again.kind(), coord_api::ErrorKind::Abandoned);
            }
        }
        eventually(HEAL, "revoked", async || scene.coordinator.revoke(lease).await).await;
    }
}

/// Another's entry in place of the deleted one, or none.
async fn lost_and_deleted_by_another(replaced: bool) {
    let scene = scene().await;
    let (creates, _lease, _kept) = scene.creates().await;
    for (folder, create) in &creates {
        scene.prepare(folder, create).await;
        scene.proxy.drop_answers();
        let thief = async {
            let made = eventually(HEAL, "it has happened", async || {
                let children = scene
                    .witness
                    .children(folder)
                    .await
                    .map_err(|error| error.to_string())?;
                children.into_iter().next().ok_or("nothing there".to_owned())
            })
            .await;
            scene.witness.delete(&made.key, Expect::Any).await.unwrap();
            if replaced && !made.key.is_sequential() {
                scene.witness.create_persistent(&made.key, "another's").await.unwrap();
            }
            scene.proxy.reset();
            scene.proxy.pass();
        };
        let (outcome, ()) = futures::join!(scene.patient.create(create), thief);
        let error = outcome.expect_err("it has happened, and is gone");
        assert!(error.is_unknown(), "{error:?}");
        let left = usize::from(replaced && !matches!(create.mode, CreateMode::Sequential(_)));
        assert_eq!(scene.entries(folder).await, left, "made once more: {create:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_answer_is_lost_is_not_made_again_when_another_has_deleted_it() {
    lost_and_deleted_by_another(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_answer_is_lost_is_unknown_when_another_has_replaced_it() {
    lost_and_deleted_by_another(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_that_never_arrived_is_sent_again() {
    let scene = scene().await;
    let (creates, _lease, _kept) = scene.creates().await;
    for (folder, create) in creates
        .iter()
        .filter(|(_, create)| !matches!(create.mode, CreateMode::Sequential(_)))
    {
        scene.prepare(folder, create).await;
        scene.proxy.black_hole();
        let cut = async {
            let sent = scene.proxy.stats();
            eventually(HEAL, "it was swallowed", async || scene.proxy.stats() != sent).await;
            scene.proxy.reset();
            scene.proxy.pass();
        };
        let (made, ()) = futures::join!(scene.patient.create(create), cut);
        assert_eq!(made.unwrap().key, create.key);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_that_arrives_late_leaves_no_ghost_once_it_was_abandoned() {
    let scene = scene().await;
    let (creates, _lease, _kept) = scene.creates().await;
    scene.proxy.hold_requests();
    for (_, create) in &creates {
        let error = scene.coordinator.create(create).await.unwrap_err();
        assert!(!error.is_definite(), "{error:?}");
        // It may still arrive: nobody can say that it will not.
        assert!(scene.coordinator.abandon(create).await.is_err());
    }
    scene.proxy.release();
    for (folder, create) in &creates {
        eventually(HEAL, "undone", async || scene.coordinator.abandon(create).await).await;
        assert_eq!(scene.entries(folder).await, 0, "{create:?}");
    }
    heals(&scene.coordinator).await;
    for (folder, create) in &creates {
        assert_eq!(scene.entries(folder).await, 0, "{create:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_of_a_lost_lease_is_abandoned_with_it() {
    let scene = scene().await;
    let grant = scene.coordinator.grant(Duration::from_secs(1)).await.unwrap();
    let folder = key("/lost");
    let create = Create::new(
        scene.coordinator.env(),
        folder.clone(),
        "x",
        CreateMode::Sequential(grant.lease),
    );
    scene.proxy.drop_answers();
    assert!(scene.coordinator.create(&create).await.is_err());
    let env = scene.coordinator.env();
    env.sleep_until(grant.valid_until + grant.ttl).await;
    scene.proxy.pass();
    eventually(HEAL, "abandoned", async || scene.coordinator.abandon(&create).await).await;
    assert_eq!(scene.entries(&folder).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wire_cut_at_any_moment_makes_neither_ghosts_nor_doubles() {
    let scene = scene().await;
    let env = scene.coordinator.env().clone();
    let (mut creates, _lease, _kept) = scene.creates().await;
    for round in 0..30 {
        let (folder, create) = &mut creates[round % 3];
        *create = Create {
            key: match create.mode {
                CreateMode::Sequential(_) => folder.clone(),
                _ => folder.child(format!("n{round}")).unwrap(),
            },
            nonce: env.nonce(),
            ..create.clone()
        };
        let before = scene.entries(folder).await;
        let cut = async {
            env.sleep(env.random_duration(Duration::from_millis(6))).await;
            scene.proxy.reset();
        };
        let (first, ()) = futures::join!(scene.coordinator.create(create), cut);
        let made = match first {
            Ok(_) => 1,
            Err(_) if round % 2 == 0 => {
                eventually(HEAL, "found or made", async || {
                    scene.coordinator.create(create).await.map(|_| 1)
                })
                .await
            }
            Err(_) => {
                eventually(HEAL, "undone", async || {
                    scene.coordinator.abandon(create).await.map(|()| 0)
                })
                .await
            }
        };
        assert_eq!(scene.entries(folder).await, before + made, "round {round}: {create:?}");
    }
}
