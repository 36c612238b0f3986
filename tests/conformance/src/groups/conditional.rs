use coord_api::{CoordinatorExt, Entry, ErrorKind, Expect, Version};

use crate::failure::Checked;
use crate::lease::{TTL, gone_now};
use crate::scratch::{Client, Scratch, key};

/// That a write on an old version is refused, and that the version named in the refusal, if any, is the one now.
async fn stale_is_refused(client: &Client, stale: Version, now: &Entry) -> Checked {
    let results = [
        client.update(&now.key, "stale".into(), stale.into()).await.map(drop),
        client.delete(&now.key, stale.into()).await,
    ];
    for result in results {
        let error = refused!(
            result,
            ErrorKind::VersionMismatch(_),
            "a write on the old version {stale}"
        );
        if let ErrorKind::VersionMismatch(Some(told)) = error.kind() {
            check_eq!(*told, now.version, "the version that the refusal names");
        }
    }
    check_eq!(
        client.get_latest(&now.key).await?,
        Some(now.clone()),
        "the entry after the refusals"
    );
    Ok(())
}

pub(crate) async fn an_update_changes_value_and_version_and_nothing_else(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let entries = [
        client.create_persistent(&key("/p"), "0").await?,
        client.create_ephemeral(&key("/e"), "0", lease).await?,
        client.create_sequential(&key("/s"), "0", lease).await?,
    ];
    for mut last in entries {
        // The last value is written twice: that is another version all the same.
        for value in ["1", "2", "2"] {
            let new = client.update(&last.key, value.into(), last.version.into()).await?;
            check!(
                new.version != last.version,
                "{}: expected a new version, saw {new:?}",
                last.key
            );
            let expected = Entry {
                value: value.into(),
                version: new.version,
                ..last.clone()
            };
            check_eq!(new, expected, "the updated entry");
            check_eq!(
                other.get_latest(&last.key).await?,
                Some(new.clone()),
                "the entry as another reads it"
            );
            last = new;
        }
    }
    Ok(())
}

pub(crate) async fn an_update_keeps_the_lease(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = client.grant(TTL).await?.lease;
    let fixed = client.create_ephemeral(&key("/e"), "v", lease).await?;
    let sequential = client.create_sequential(&key("/s"), "v", lease).await?;
    for entry in [&fixed, &sequential] {
        client.update(&entry.key, "w".into(), entry.version.into()).await?;
        // Also when somebody else writes, and unconditionally.
        let updated = other.update(&entry.key, "x".into(), Expect::Any).await?;
        check_eq!(updated.lease, Some(lease), "the lease after the update");
    }
    client.revoke(lease).await?;
    gone_now(&other, &fixed.key).await?;
    gone_now(&other, &sequential.key).await
}

pub(crate) async fn an_unconditional_update_needs_only_an_entry(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    client.create_persistent(&key("/k"), "0").await?;
    other.update(&key("/k"), "1".into(), Expect::Any).await?;
    let entry = client.update(&key("/k"), "2".into(), Expect::Any).await?;
    check_eq!(client.get(&key("/k")).await?, Some(entry.clone()), "the entry");
    check_eq!(entry.value, "2", "its value");
    Ok(())
}

pub(crate) async fn a_write_to_a_missing_key_is_not_found(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let gone = client.create_persistent(&key("/gone"), "v").await?;
    client.delete(&gone.key, gone.version.into()).await?;
    for name in ["/gone", "/never", "/never/below"].map(key) {
        for expected in [Expect::Any, gone.version.into()] {
            let updated = client.update(&name, "v".into(), expected).await;
            refused!(updated, ErrorKind::NotFound, "an update of {name} with {expected:?}");
            let deleted = client.delete(&name, expected).await;
            refused!(deleted, ErrorKind::NotFound, "a delete of {name} with {expected:?}");
        }
        check_eq!(client.get(&name).await?, None, "{name} afterwards");
    }
    Ok(())
}

pub(crate) async fn a_write_on_an_old_version_is_refused(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let entries = [
        client.create_persistent(&key("/p"), "0").await?,
        client.create_ephemeral(&key("/e"), "0", lease).await?,
        client.create_sequential(&key("/s"), "0", lease).await?,
    ];
    for first in entries {
        let second = other.update(&first.key, "1".into(), first.version.into()).await?;
        stale_is_refused(&client, first.version, &second).await?;
        let third = client.update(&first.key, "2".into(), second.version.into()).await?;
        stale_is_refused(&other, first.version, &third).await?;
        stale_is_refused(&other, second.version, &third).await?;
    }
    Ok(())
}

pub(crate) async fn a_write_on_an_earlier_incarnation_is_refused(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let mut seen = Vec::new();
    for round in 0..4 {
        let old = match round % 2 {
            0 => client.create_persistent(&key("/k"), "same").await?,
            _ => client.create_ephemeral(&key("/k"), "same", lease).await?,
        };
        for version in &seen {
            stale_is_refused(&client, *version, &old).await?;
            stale_is_refused(&other, *version, &old).await?;
        }
        let updated = client.update(&old.key, "same".into(), old.version.into()).await?;
        seen.extend([old.version, updated.version]);
        client.delete(&old.key, updated.version.into()).await?;
    }
    // A key created by another client, after this one's own is gone, is not its own.
    let old = client.create_persistent(&key("/other"), "same").await?;
    client.delete(&old.key, Expect::Any).await?;
    let new = other.create_persistent(&key("/other"), "same").await?;
    stale_is_refused(&client, old.version, &new).await
}

pub(crate) async fn a_delete_takes_exactly_the_expected_entry(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for expected in [None, Some(())] {
        let entries = [
            client.create_persistent(&key("/dir/p"), "v").await?,
            client.create_ephemeral(&key("/dir/e"), "v", lease).await?,
            client.create_sequential(&key("/dir"), "v", lease).await?,
        ];
        let beside = other.create_persistent(&key("/dir/beside"), "v").await?;
        for entry in entries {
            let expected = expected.map_or(Expect::Any, |()| entry.version.into());
            client.delete(&entry.key, expected).await?;
            gone_now(&other, &entry.key).await?;
            check_eq!(
                client.get(&entry.key).await?,
                None,
                "{} as its deleter sees it",
                entry.key
            );
        }
        check_eq!(client.children(&key("/dir")).await?, vec![beside.clone()], "what stays");
        // Another client's delete of an ephemeral entry works, too.
        let ephemeral = client.create_ephemeral(&key("/dir/e"), "v", lease).await?;
        other.delete(&ephemeral.key, ephemeral.version.into()).await?;
        gone_now(&client, &ephemeral.key).await?;
        client.delete(&beside.key, beside.version.into()).await?;
    }
    Ok(())
}

pub(crate) async fn a_version_survives_text(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let entry = client.create_persistent(&key("/k"), "v").await?;
    let parsed: Version = match entry.version.to_string().parse() {
        Ok(parsed) => parsed,
        Err(error) => return Err(crate::Failure::new(format!("expected its text to parse, saw {error}"))),
    };
    check_eq!(parsed, entry.version, "the version through text");
    client.update(&entry.key, "w".into(), parsed.into()).await?;
    Ok(())
}
