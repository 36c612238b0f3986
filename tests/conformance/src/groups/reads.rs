use coord_api::{CoordinatorExt, Entry, ErrorKind, Expect, Key, Target};
use futures::{StreamExt, TryStreamExt, stream};

use crate::failure::{Checked, Failure};
use crate::scratch::{Scratch, key};
use crate::view::View;

/// The number that a behaviour wrote as a value.
pub(crate) fn number(entry: &Entry) -> Checked<u64> {
    std::str::from_utf8(&entry.value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::new(format!("expected a number in {entry:?}")))
}

pub(crate) async fn get_sees_every_own_write(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let leases = [scratch.kept_lease(&client).await?, scratch.kept_lease(&client).await?];
    for round in 0..60 {
        let name = key(&format!("/dir/k{}", round % 7));
        // Each write goes another way: over one lease, over another, over none.
        let created = match leases.get(round % 3) {
            Some(lease) => client.create_ephemeral(&name, "0", *lease).await?,
            None => client.create_persistent(&name, "0").await?,
        };
        check_eq!(
            client.get(&name).await?,
            Some(created.clone()),
            "round {round}, after the create"
        );
        let updated = client.update(&name, "1".into(), created.version.into()).await?;
        check_eq!(
            client.get(&name).await?,
            Some(updated.clone()),
            "round {round}, after the update"
        );
        client.delete(&name, updated.version.into()).await?;
        check_eq!(client.get(&name).await?, None, "round {round}, after the delete");
    }
    Ok(())
}

pub(crate) async fn children_sees_every_own_write(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let leases = [scratch.kept_lease(&client).await?, scratch.kept_lease(&client).await?];
    for round in 0..40 {
        let created = match leases.get(round % 3) {
            Some(lease) => client.create_sequential(&key("/dir"), "0", *lease).await?,
            None => client.create_persistent(&key("/dir/k"), "0").await?,
        };
        check_eq!(
            client.children(&key("/dir")).await?,
            vec![created.clone()],
            "round {round}, after the create"
        );
        let updated = client.update(&created.key, "1".into(), created.version.into()).await?;
        check_eq!(
            client.children(&key("/dir")).await?,
            vec![updated.clone()],
            "round {round}, after the update"
        );
        client.delete(&updated.key, updated.version.into()).await?;
        check_eq!(
            client.children(&key("/dir")).await?,
            [],
            "round {round}, after the delete"
        );
    }
    Ok(())
}

pub(crate) async fn get_latest_sees_every_finished_write(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&one).await?;
    for round in 0..50 {
        let (writer, reader) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let created = match round % 4 {
            0 => writer.create_ephemeral(&key("/k"), "0", lease).await?,
            _ => writer.create_persistent(&key("/k"), "0").await?,
        };
        check_eq!(
            reader.get_latest(&key("/k")).await?,
            Some(created.clone()),
            "round {round}, created"
        );
        let updated = writer.update(&key("/k"), "1".into(), created.version.into()).await?;
        check_eq!(
            reader.get_latest(&key("/k")).await?,
            Some(updated.clone()),
            "round {round}, updated"
        );
        writer.delete(&key("/k"), updated.version.into()).await?;
        check_eq!(reader.get_latest(&key("/k")).await?, None, "round {round}, deleted");
    }
    Ok(())
}

pub(crate) async fn reads_never_go_back_in_time(scratch: &Scratch<'_>) -> Checked {
    const LAST: u64 = 150;
    let (writer, reader) = scratch.two_clients().await?;
    writer.create_persistent(&key("/dir/k"), "0").await?;
    let write = async {
        for value in 1..=LAST {
            writer
                .update(&key("/dir/k"), value.to_string().into(), Expect::Any)
                .await?;
            tokio::task::yield_now().await;
        }
        Checked::Ok(())
    };
    let read = async {
        let mut newest = 0;
        let mut turn = 0;
        while newest < LAST {
            let found = match turn % 5 {
                0 => reader.get_latest(&key("/dir/k")).await?,
                1 | 3 => reader.children(&key("/dir")).await?.pop(),
                _ => reader.get(&key("/dir/k")).await?,
            };
            let seen = found.as_ref().map_or(Ok(0), number)?;
            check!(seen >= newest, "read {turn}: expected {newest} or later, saw {seen}");
            newest = seen;
            turn += 1;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    futures::try_join!(write, read).map(drop)
}

pub(crate) async fn get_is_not_older_than_what_was_seen_before(scratch: &Scratch<'_>) -> Checked {
    let (writer, reader) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&reader).await?;
    writer.create_persistent(&key("/watched"), "0").await?;
    let mut view = View::open(&*reader, Target::Key(key("/watched"))).await?;
    for round in 1..=20_u64 {
        // Seen in the event of a watch.
        writer
            .update(&key("/watched"), round.to_string().into(), Expect::Any)
            .await?;
        view.until("the update", |view| {
            view.entries().first().and_then(|entry| number(entry).ok()) >= Some(round)
        })
        .await?;
        let seen = reader.get(&key("/watched")).await?.as_ref().map_or(Ok(0), number)?;
        check!(seen >= round, "expected {round} or later after its event, saw {seen}");
        // Seen in the refusal of a create.
        let name = key(&format!("/taken/k{round}"));
        let held = writer.create_persistent(&name, "v").await?;
        let refused = reader.create_ephemeral(&name, "v", lease).await;
        refused!(refused, ErrorKind::AlreadyExists(_), "a create of a taken key");
        check_eq!(
            reader.get(&name).await?,
            Some(held),
            "{name} after it was named in a refusal"
        );
    }
    Ok(())
}

pub(crate) async fn a_missing_key_reads_as_nothing(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    for name in ["/missing", "/missing/below"].map(key) {
        check_eq!(client.get(&name).await?, None, "{name}");
        check_eq!(client.get_latest(&name).await?, None, "{name}, the latest");
        check_eq!(client.children(&name).await?, [], "the children of {name}");
    }
    check_eq!(
        client.children(&Key::root()).await?,
        [],
        "the children of an empty root"
    );
    Ok(())
}

pub(crate) async fn children_are_immediate_and_ordered_by_name(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let mut expected = Vec::new();
    for name in [
        "/dir/b", "/dir/a", "/dir/a-", "/dir/a.b", "/dir/Z", "/dir/0", "/dir/10", "/dir/9", "/dir/a~",
    ] {
        expected.push(client.create_persistent(&key(name), name).await?);
    }
    expected.push(client.create_ephemeral(&key("/dir/eph"), "e", lease).await?);
    expected.push(client.create_sequential(&key("/dir"), "s", lease).await?);
    for beside in [
        "/dir/a/grandchild",
        "/dir/b/grand/child",
        "/dir2",
        "/dir2/x",
        "/di",
        "/dir-x",
        "/other/dir/y",
    ] {
        client.create_persistent(&key(beside), "beside").await?;
    }
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    check_eq!(client.children(&key("/dir")).await?, expected, "the children of /dir");
    let top = client.children(&Key::root()).await?;
    let top: Vec<_> = top.iter().map(|entry| entry.key.as_str()).collect();
    check_eq!(
        top,
        ["/di", "/dir", "/dir-x", "/dir2", "/other"],
        "the children of the root"
    );
    Ok(())
}

pub(crate) async fn a_large_listing_works(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    for index in 0..12_u8 {
        let value = vec![index; 400 * 1024];
        client
            .create_persistent(&key(&format!("/dir/k{index:02}")), value)
            .await?;
    }
    for who in [&client, &other] {
        // The second client's view need not be the latest; one look at the latest makes it so.
        who.get_latest(&key("/dir/k11")).await?;
        let listed = who.children(&key("/dir")).await?;
        check_eq!(listed.len(), 12, "the number of children");
        for (index, entry) in (0..12_u8).zip(&listed) {
            check!(
                entry.value.len() == 400 * 1024 && entry.value.iter().all(|byte| *byte == index),
                "expected 400 KiB of {index} in {}, saw {} bytes",
                entry.key,
                entry.value.len()
            );
        }
    }
    Ok(())
}

pub(crate) async fn a_thousand_children_are_listed(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let created: Vec<Entry> = stream::iter(0..1000)
        .map(|index| {
            let client = client.clone();
            async move {
                let name = key(&format!("/dir/k{index:04}"));
                client.create_persistent(&name, name.name().to_owned()).await
            }
        })
        .buffered(32)
        .try_collect()
        .await?;
    let listed = client.children(&key("/dir")).await?;
    check_eq!(listed.len(), created.len(), "the number of children");
    check!(
        listed == created,
        "expected the children as created and in order, saw others"
    );
    let mut tokens: Vec<_> = created.iter().map(|entry| entry.created).collect();
    tokens.sort_unstable();
    tokens.dedup();
    check_eq!(tokens.len(), created.len(), "the number of different created");
    Ok(())
}
