use coord_api::{CoordinatorExt, Entry, Expect, Key, Standing};

use crate::failure::Checked;
use crate::lease::{ALLOWANCE, TTL, gone_by, granted};
use crate::scratch::{Client, Scratch, key};

/// That this entry stands as it should.
async fn stands(client: &Client, entry: &Entry, predecessor: Option<&Key>) -> Checked {
    let expected = Standing {
        own: Some(entry.clone()),
        predecessor: predecessor.cloned(),
    };
    check_eq!(client.standing(entry).await?, expected, "the standing of {}", entry.key);
    Ok(())
}

async fn is_gone(client: &Client, entry: &Entry) -> Checked {
    let expected = Standing {
        own: None,
        predecessor: None,
    };
    check_eq!(
        client.standing(entry).await?,
        expected,
        "the standing of {}, which is gone",
        entry.key
    );
    Ok(())
}

pub(crate) async fn sequential_entries_get_names_of_their_own(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let (first, second) = (scratch.kept_lease(&one).await?, scratch.kept_lease(&two).await?);
    let dir = key("/dir");
    let creates = (0..10).map(|_| async {
        futures::try_join!(
            one.create_sequential(&dir, "v", first),
            two.create_sequential(&dir, "v", second),
        )
    });
    let mut created: Vec<Entry> = Vec::new();
    for (a, b) in futures::future::try_join_all(creates).await? {
        created.extend([a, b]);
    }
    for entry in &created {
        check!(
            entry.key.is_child_of(&dir) && entry.key.is_sequential(),
            "expected a child of {dir} that begins with ~, saw {}",
            entry.key
        );
    }
    let mut tokens: Vec<_> = created.iter().map(|entry| entry.created).collect();
    tokens.sort_unstable();
    tokens.dedup();
    check_eq!(tokens.len(), created.len(), "the number of different created");
    created.sort_by(|a, b| a.key.cmp(&b.key));
    one.get_latest(&dir).await?;
    check_eq!(
        one.children(&dir).await?,
        created,
        "the children, each under a name of its own"
    );
    Ok(())
}

pub(crate) async fn sequential_entries_are_ordered_by_their_creation(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let (first, second) = (scratch.kept_lease(&one).await?, scratch.kept_lease(&two).await?);
    let mut entries: Vec<Entry> = Vec::new();
    for round in 0..24 {
        let (client, lease) = if round % 3 == 0 { (&two, second) } else { (&one, first) };
        entries.push(client.create_sequential(&key("/dir"), "v", lease).await?);
    }
    check!(
        entries.is_sorted_by(|a, b| a.created < b.created),
        "expected created to rise with each create, saw {:?}",
        entries.iter().map(|entry| entry.created).collect::<Vec<_>>()
    );
    for (index, entry) in entries.iter().enumerate() {
        let predecessor = index.checked_sub(1).map(|before| &entries[before].key);
        let client = if index % 2 == 0 { &one } else { &two };
        // Made by either: a look at the latest lets this client see it.
        client.get_latest(&entry.key).await?;
        stands(client, entry, predecessor).await?;
    }
    Ok(())
}

pub(crate) async fn the_first_stands_lowest_and_each_next_behind_it(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let a = client.create_sequential(&key("/dir"), "a", lease).await?;
    check!(
        client.standing(&a).await?.is_lowest(),
        "expected the only entry to stand lowest"
    );
    let b = client.create_sequential(&key("/dir"), "b", lease).await?;
    let c = client.create_sequential(&key("/dir"), "c", lease).await?;
    stands(&client, &a, None).await?;
    stands(&client, &b, Some(&a.key)).await?;
    stands(&client, &c, Some(&b.key)).await
}

pub(crate) async fn who_goes_in_the_middle_is_skipped(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&one).await?;
    let middle = two.grant(TTL).await?.lease;
    let a = one.create_sequential(&key("/dir"), "a", lease).await?;
    let b = two.create_sequential(&key("/dir"), "b", middle).await?;
    let c = one.create_sequential(&key("/dir"), "c", lease).await?;
    let d = one.create_sequential(&key("/dir"), "d", lease).await?;
    stands(&one, &c, Some(&b.key)).await?;
    two.revoke(middle).await?;
    one.get_latest(&b.key).await?;
    // Not lowest: the one before the one that went is still there.
    stands(&one, &c, Some(&a.key)).await?;
    stands(&one, &d, Some(&c.key)).await?;
    one.delete(&a.key, a.version.into()).await?;
    stands(&one, &c, None).await?;
    one.delete(&c.key, c.version.into()).await?;
    stands(&one, &d, None).await
}

pub(crate) async fn an_entry_that_is_gone_does_not_stand(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let staying = scratch.kept_lease(&client).await?;
    let ending = client.grant(TTL).await?.lease;
    let first = client.create_sequential(&key("/dir"), "v", staying).await?;
    let deleted = client.create_sequential(&key("/dir"), "v", staying).await?;
    let hijacked = client.create_sequential(&key("/dir"), "v", staying).await?;
    let revoked = client.create_sequential(&key("/dir"), "v", ending).await?;
    client.delete(&deleted.key, Expect::Any).await?;
    client.revoke(ending).await?;
    other.delete(&hijacked.key, Expect::Any).await?;
    client.get_latest(&hijacked.key).await?;
    for entry in [deleted, hijacked, revoked] {
        is_gone(&client, &entry).await?;
    }
    stands(&client, &first, None).await?;
    // The same name with another created is another entry.
    let impostor = Entry {
        created: first.created + 1,
        ..first.clone()
    };
    check_eq!(
        client.standing(&impostor).await?.own,
        None,
        "an entry of another created"
    );
    Ok(())
}

pub(crate) async fn ordinary_siblings_do_not_count(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    client.create_persistent(&key("/dir/before"), "v").await?;
    client.create_ephemeral(&key("/dir/also-before"), "v", lease).await?;
    client.create_persistent(&key("/dir/x/below"), "v").await?;
    client.create_sequential(&key("/dir/x"), "v", lease).await?;
    client.create_sequential(&key("/dir2"), "v", lease).await?;
    client.create_sequential(&key("/di"), "v", lease).await?;
    let a = client.create_sequential(&key("/dir"), "v", lease).await?;
    client.create_persistent(&key("/dir/a-between"), "v").await?;
    client.create_ephemeral(&key("/dir/between"), "v", lease).await?;
    let b = client.create_sequential(&key("/dir"), "v", lease).await?;
    stands(&client, &a, None).await?;
    stands(&client, &b, Some(&a.key)).await
}

pub(crate) async fn standing_shows_the_entry_as_it_is_now(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let first = client.create_sequential(&key("/dir"), "v", lease).await?;
    let second = client.create_sequential(&key("/dir"), "v", lease).await?;
    let updated = client.update(&second.key, "w".into(), second.version.into()).await?;
    // Asked with the old state in hand: an update changes neither the place nor the identity.
    let standing = client.standing(&second).await?;
    check_eq!(standing.own, Some(updated.clone()), "the entry now");
    check_eq!(standing.predecessor, Some(first.key.clone()), "the predecessor");
    client.update(&first.key, "w".into(), first.version.into()).await?;
    stands(&client, &updated, Some(&first.key)).await
}

pub(crate) async fn the_next_stands_lowest_when_the_lease_before_it_has_ended(scratch: &Scratch<'_>) -> Checked {
    let (leader, next) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&next).await?;
    let answered = granted(&leader).await?;
    let first = leader
        .create_sequential(&key("/dir"), "v", answered.grant.lease)
        .await?;
    let second = next.create_sequential(&key("/dir"), "v", lease).await?;
    stands(&next, &second, Some(&first.key)).await?;
    gone_by(&next, &first.key, answered.latest_end(&leader) + ALLOWANCE).await?;
    stands(&next, &second, None).await?;
    check!(
        second.created > first.created,
        "expected a rising token, saw {first:?} and {second:?}"
    );
    Ok(())
}

pub(crate) async fn fifty_siblings_stand_in_line(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let leases = [scratch.kept_lease(&client).await?, scratch.kept_lease(&client).await?];
    let mut entries = Vec::new();
    for index in 0..50 {
        entries.push(client.create_sequential(&key("/dir"), "v", leases[index % 2]).await?);
    }
    for pair in entries.windows(2) {
        stands(&client, &pair[1], Some(&pair[0].key)).await?;
    }
    // Every second one goes.
    client.revoke(leases[0]).await?;
    let left: Vec<_> = entries.iter().skip(1).step_by(2).collect();
    stands(&client, left[0], None).await?;
    for pair in left.windows(2) {
        stands(&client, pair[1], Some(&pair[0].key)).await?;
    }
    Ok(())
}
