use std::time::Duration;

use coord_api::{
    Capabilities, CoordinatorExt, Create, CreateMode, Entry, Error, ErrorKind, Expect, Key, Operation, Target, Version,
};

use crate::failure::Checked;
use crate::scratch::{Scratch, key};

pub(crate) async fn limits_and_slacks_are_sane(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let told = client.capabilities();
    check_eq!(told.max_value, Capabilities::MAX_VALUE, "the largest value");
    check!(!told.driver.is_empty(), "expected a driver's name, saw none");
    check!(
        (3..=10).contains(&told.renewals_per_ttl),
        "expected room for a lost renewal (3 or more per ttl), saw {told:?}"
    );
    check!(
        told.max_ttl >= Duration::from_secs(60),
        "expected ttls of a minute to be possible, saw {told:?}"
    );
    check!(
        told.expiry_slack <= Duration::from_secs(10),
        "expected a slack of at most 10 s, saw {told:?}"
    );
    check!(
        !told.call_deadline.is_zero() && told.call_deadline <= Duration::from_secs(60),
        "expected a deadline above zero and of at most a minute, saw {told:?}"
    );
    check_eq!(
        scratch.client().await?.capabilities(),
        told,
        "the capabilities that another client tells"
    );
    Ok(())
}

pub(crate) async fn a_zero_or_absurd_ttl_is_refused(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let max = client.capabilities().max_ttl;
    for ttl in [Duration::ZERO, max + Duration::from_secs(1), Duration::MAX] {
        let error = refused!(
            client.grant(ttl).await,
            ErrorKind::InvalidTtl { .. },
            "a ttl of {ttl:?}"
        );
        check_eq!(
            *error.kind(),
            ErrorKind::InvalidTtl { ttl, max },
            "what the refusal names"
        );
    }
    Ok(())
}

pub(crate) async fn a_value_up_to_the_limit_works_and_one_over_it_is_refused(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let limit = client.capabilities().max_value;
    let (full, over) = (vec![0xa5; limit], vec![0xa5; limit + 1]);
    let size = over.len();
    let modes = [
        CreateMode::Persistent,
        CreateMode::Ephemeral(lease),
        CreateMode::Sequential(lease),
    ];
    for (index, mode) in modes.into_iter().enumerate() {
        let name = key(&format!("/k{index}"));
        let refused = client
            .create(&Create::new(client.env(), name.clone(), over.clone(), mode))
            .await;
        let error = refused!(
            refused,
            ErrorKind::ValueTooLarge { .. },
            "a value over the limit ({mode:?})"
        );
        check_eq!(
            *error.kind(),
            ErrorKind::ValueTooLarge { size, limit },
            "what the refusal names"
        );
        check_eq!(client.get(&name).await?, None, "{name} after the refusal");
        let entry = client
            .create(&Create::new(client.env(), name.clone(), full.clone(), mode))
            .await?;
        let refused = client.update(&entry.key, over.clone().into(), Expect::Any).await;
        refused!(refused, ErrorKind::ValueTooLarge { .. }, "an update over the limit");
        let updated = client
            .update(&entry.key, full.clone().into(), entry.version.into())
            .await?;
        let read = other.get_latest(&entry.key).await?;
        check!(
            read.as_ref() == Some(&updated) && updated.value == full,
            "{}: expected {limit} bytes as written, saw {:?} bytes",
            entry.key,
            read.map(|entry| entry.value.len())
        );
    }
    Ok(())
}

pub(crate) async fn a_name_that_only_the_store_may_choose_is_refused(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    for mode in [CreateMode::Persistent, CreateMode::Ephemeral(lease)] {
        let create = Create::new(client.env(), key("/dir/~mine"), "v", mode);
        refused!(
            client.create(&create).await,
            ErrorKind::InvalidKey(_),
            "a name with ~ ({mode:?})"
        );
    }
    check_eq!(client.get(&key("/dir")).await?, None, "the parent of a refused create");
    Ok(())
}

pub(crate) async fn the_root_is_no_entry(scratch: &Scratch<'_>) -> Checked {
    // Through the prefix, and at the store's own root; there with a version that nothing has, so that a driver that
    // does send it harms nothing.
    for client in [scratch.client().await?, scratch.raw_client().await?] {
        let lease = scratch.kept_lease(&client).await?;
        let root = Key::root();
        let nothing = Expect::Version(Version::new(u64::MAX >> 2, u64::MAX >> 2));
        refused!(client.get(&root).await, ErrorKind::InvalidKey(_), "get /");
        refused!(
            client.get_latest(&root).await,
            ErrorKind::InvalidKey(_),
            "get the latest /"
        );
        let updated = client.update(&root, "v".into(), nothing).await;
        refused!(updated, ErrorKind::InvalidKey(_), "update /");
        refused!(
            client.delete(&root, nothing).await,
            ErrorKind::InvalidKey(_),
            "delete /"
        );
        let created = client.create_ephemeral(&root, "v", lease).await;
        refused!(created, ErrorKind::InvalidKey(_), "create /");
        let watched = client.watch(&Target::Key(root)).await;
        refused!(watched, ErrorKind::InvalidKey(_), "watch /");
    }
    Ok(())
}

pub(crate) async fn sequential_entries_below_the_root_work(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let entry = client.create_sequential(&Key::root(), "v", lease).await?;
    check!(
        entry.key.is_child_of(&Key::root()),
        "expected a child of the root, saw {}",
        entry.key
    );
    check_eq!(
        client.children(&Key::root()).await?,
        vec![entry.clone()],
        "the children of the root"
    );
    check!(
        client.standing(&entry).await?.is_lowest(),
        "expected it to stand lowest"
    );
    Ok(())
}

pub(crate) async fn an_invalid_key_does_not_come_into_being(scratch: &Scratch<'_>) -> Checked {
    for bad in [
        "", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/a b", "/ä", "/a\0", "/.coord", "/a*",
    ] {
        check!(
            Key::new(bad).is_err(),
            "expected {bad:?} to be refused as a key, saw it accepted"
        );
    }
    check!(
        Key::new(format!("/{}", "x".repeat(256))).is_err(),
        "expected 256 bytes in a segment to be refused"
    );
    // Below the prefix it would be too long, though it is valid as seen from inside.
    let client = scratch.client().await?;
    let long = key(&format!(
        "/{}",
        ["x".repeat(250), "x".repeat(250), "x".repeat(250), "x".repeat(250)].join("/")
    ));
    let created = client.create_persistent(&long, "v").await;
    refused!(
        created,
        ErrorKind::InvalidKey(_),
        "a key that is too long below its prefix"
    );
    Ok(())
}

pub(crate) async fn a_refusal_names_operation_and_key(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let foreign = scratch.kept_lease(&other).await?;
    let taken = client.create_persistent(&key("/taken/child"), "v").await?;
    let missing = key("/missing");
    let stale = Expect::Version(Version::new(1, 1));
    let update = |name: Key, expected| {
        let client = client.clone();
        async move { client.update(&name, "v".into(), expected).await }
    };
    type Case = (Operation, Option<Key>, Option<Error>);
    let parent = key("/taken");
    let cases: Vec<Case> = vec![
        (Operation::Grant, None, client.grant(Duration::ZERO).await.err()),
        (Operation::Renew, None, client.renew(foreign).await.err()),
        (Operation::Revoke, None, client.revoke(foreign).await.err()),
        (
            Operation::Create,
            Some(taken.key.clone()),
            client.create_persistent(&taken.key, "v").await.err(),
        ),
        (
            Operation::Create,
            Some(missing.clone()),
            client.create_ephemeral(&missing, "v", foreign).await.err(),
        ),
        (
            Operation::Update,
            Some(missing.clone()),
            update(missing.clone(), Expect::Any).await.err(),
        ),
        (
            Operation::Update,
            Some(taken.key.clone()),
            update(taken.key.clone(), stale).await.err(),
        ),
        (
            Operation::Delete,
            Some(missing.clone()),
            client.delete(&missing, Expect::Any).await.err(),
        ),
        (
            Operation::Delete,
            Some(taken.key.clone()),
            client.delete(&taken.key, stale).await.err(),
        ),
        (
            Operation::Delete,
            Some(parent.clone()),
            client.delete(&parent, Expect::Any).await.err(),
        ),
    ];
    for (operation, name, error) in cases {
        let Some(error) = error else {
            return Err(crate::Failure::new(format!(
                "{operation} {name:?}: expected a refusal, saw success"
            )));
        };
        check_eq!(error.operation(), operation, "the operation in {error:?}");
        check_eq!(error.key(), name.as_ref(), "the key in {error:?}");
        check!(error.is_definite(), "expected class Definite, saw {error:?}");
        let text = error.to_string();
        let named = text.contains(&operation.to_string()) && name.is_none_or(|name| text.contains(name.as_str()));
        check!(named, "expected operation and key in the text, saw {text:?}");
    }
    Ok(())
}

pub(crate) async fn standing_of_a_made_up_entry_is_nothing(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let real = client.create_sequential(&key("/dir"), "v", lease).await?;
    let made_up = Entry {
        key: key("/nowhere/~0"),
        ..real
    };
    check_eq!(
        client.standing(&made_up).await?.own,
        None,
        "the own entry of who never was"
    );
    Ok(())
}
