use std::time::Duration;

use coord_api::{
    Coordinator, CoordinatorExt, Create, CreateMode, Entry, Error, ErrorKind, Expect, Key, LeaseId, Operation, Target,
    Version,
};

use crate::scratch::key;

/// For a driver's fault tests: a client whose store cannot be reached is given everything that no store may see, and then
/// closed. Each is a definite error that names operation, key and rule: it was refused before anything was sent.
///
/// # Panics
/// When one is not.
pub async fn bad_input_is_refused_unsent(client: &(impl Coordinator + ?Sized)) {
    let lease = LeaseId(client.env().random_u64() >> 2 | 1);
    for (what, error, fits) in refusals(client, lease).await {
        refused(what, error, fits);
    }
    // It cannot be told to the store, and is closed all the same.
    client.close().await.ok();
    for (operation, error) in after_close(client, lease).await {
        refused(operation.to_string(), error, |kind| matches!(kind, ErrorKind::Closed));
    }
}

fn refused(what: String, error: Option<Error>, fits: fn(&ErrorKind) -> bool) {
    let error = error.unwrap_or_else(|| panic!("{what}: expected a refusal, saw success"));
    assert!(error.is_definite(), "{what}: expected class Definite, saw {error:?}");
    let named = what.starts_with(&error.operation().to_string());
    assert!(named, "{what}: expected this operation to be named, saw {error:?}");
    assert!(fits(error.kind()), "{what}: saw another rule: {error:?}");
}

type Case = (String, Option<Error>, fn(&ErrorKind) -> bool);

async fn refusals(client: &(impl Coordinator + ?Sized), lease: LeaseId) -> Vec<Case> {
    let (root, name) = (Key::root(), key("/k"));
    let capabilities = client.capabilities();
    let large = vec![0; capabilities.max_value + 1];
    let entry = Entry {
        key: root.clone(),
        value: "v".into(),
        version: Version::new(1, 1),
        created: 1,
        lease: None,
    };
    let mut cases: Vec<Case> = Vec::new();
    for ttl in [Duration::ZERO, capabilities.max_ttl + Duration::from_secs(1)] {
        let error = client.grant(ttl).await.err();
        cases.push((format!("grant {ttl:?}"), error, |kind| {
            matches!(kind, ErrorKind::InvalidTtl { .. })
        }));
    }
    let foreign = |kind: &ErrorKind| matches!(kind, ErrorKind::ForeignLease(_));
    cases.push(("renew".into(), client.renew(lease).await.err(), foreign));
    cases.push(("revoke".into(), client.revoke(lease).await.err(), foreign));
    for mode in [CreateMode::Ephemeral(lease), CreateMode::Sequential(lease)] {
        let create = Create::new(client.env(), name.clone(), "v", mode);
        cases.push((format!("create {mode:?}"), client.create(&create).await.err(), foreign));
        cases.push((
            format!("abandon {mode:?}"),
            client.abandon(&create).await.err(),
            foreign,
        ));
    }
    let invalid = |kind: &ErrorKind| matches!(kind, ErrorKind::InvalidKey(_));
    for bad in [root.clone(), key("/dir/~chosen")] {
        let create = Create::new(client.env(), bad.clone(), "v", CreateMode::Persistent);
        cases.push((format!("create {bad}"), client.create(&create).await.err(), invalid));
        cases.push((format!("abandon {bad}"), client.abandon(&create).await.err(), invalid));
    }
    cases.push(("get /".into(), client.get(&root).await.err(), invalid));
    cases.push(("get latest /".into(), client.get_latest(&root).await.err(), invalid));
    let updated = client.update(&root, "v".into(), Expect::Any).await;
    cases.push(("update /".into(), updated.err(), invalid));
    cases.push((
        "delete /".into(),
        client.delete(&root, Expect::Any).await.err(),
        invalid,
    ));
    cases.push(("standing of /".into(), client.standing(&entry).await.err(), invalid));
    let watched = client.watch(&Target::Key(root)).await.map(drop);
    cases.push(("watch /".into(), watched.err(), invalid));
    let too_large = |kind: &ErrorKind| matches!(kind, ErrorKind::ValueTooLarge { .. });
    let created = client.create_persistent(&name, large.clone()).await;
    cases.push(("create a large value".into(), created.err(), too_large));
    let updated = client.update(&name, large.into(), Expect::Any).await;
    cases.push(("update to a large value".into(), updated.err(), too_large));
    cases
}

async fn after_close(client: &(impl Coordinator + ?Sized), lease: LeaseId) -> Vec<(Operation, Option<Error>)> {
    let name = key("/k");
    let create = Create::new(client.env(), name.clone(), "v", CreateMode::Persistent);
    vec![
        (Operation::Grant, client.grant(Duration::from_secs(10)).await.err()),
        (Operation::Renew, client.renew(lease).await.err()),
        (Operation::Create, client.create(&create).await.err()),
        (Operation::Abandon, client.abandon(&create).await.err()),
        (Operation::Get, client.get(&name).await.err()),
        (Operation::GetLatest, client.get_latest(&name).await.err()),
        (Operation::Children, client.children(&name).await.err()),
        (
            Operation::Update,
            client.update(&name, "v".into(), Expect::Any).await.err(),
        ),
        (Operation::Delete, client.delete(&name, Expect::Any).await.err()),
        (
            Operation::Watch,
            client.watch(&Target::Key(name.clone())).await.map(drop).err(),
        ),
    ]
}
