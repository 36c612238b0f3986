use bytes::Bytes;
use coord_api::{CoordinatorExt, Create, CreateMode, ErrorKind, Key};

use crate::failure::Checked;
use crate::lease::{TTL, ends_in_time, granted};
use crate::scratch::{Scratch, key};

pub(crate) async fn a_create_returns_the_entry_as_it_is_stored(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let modes = [
        CreateMode::Persistent,
        CreateMode::Ephemeral(lease),
        CreateMode::Sequential(lease),
    ];
    for (index, mode) in modes.into_iter().enumerate() {
        let name = key(&format!("/k{index}"));
        let entry = client
            .create(&Create::new(client.env(), name.clone(), "value", mode))
            .await?;
        match mode {
            CreateMode::Sequential(_) => check!(
                entry.key.is_child_of(&name) && entry.key.is_sequential(),
                "expected a child of {name} that begins with ~, saw {}",
                entry.key
            ),
            _ => check_eq!(entry.key, name, "the key of the new entry"),
        }
        check_eq!(entry.value, "value", "the value of {mode:?}");
        check_eq!(entry.lease, mode.lease(), "the lease of {mode:?}");
        check_eq!(
            client.get(&entry.key).await?,
            Some(entry.clone()),
            "the entry as its creator reads it"
        );
        check_eq!(
            other.get_latest(&entry.key).await?,
            Some(entry.clone()),
            "the entry as another reads it"
        );
    }
    Ok(())
}

pub(crate) async fn a_taken_key_says_who_holds_it(scratch: &Scratch<'_>) -> Checked {
    let (client, rival) = scratch.two_clients().await?;
    let (lease, rivals) = (scratch.kept_lease(&client).await?, scratch.kept_lease(&rival).await?);
    let ephemeral = client.create_ephemeral(&key("/ephemeral"), "mine", lease).await?;
    let persistent = client.create_persistent(&key("/persistent"), "mine").await?;
    for held in [ephemeral, persistent] {
        for (who, lease) in [(&client, lease), (&rival, rivals)] {
            for mode in [CreateMode::Ephemeral(lease), CreateMode::Persistent] {
                let create = Create::new(who.env(), held.key.clone(), "other", mode);
                let error = refused!(
                    who.create(&create).await,
                    ErrorKind::AlreadyExists(_),
                    "a create of a taken key"
                );
                check_eq!(error.holder(), Some(&held), "who holds {}", held.key);
            }
        }
        check_eq!(
            rival.get_latest(&held.key).await?,
            Some(held.clone()),
            "the holder afterwards"
        );
    }
    Ok(())
}

pub(crate) async fn equal_values_do_not_make_equal_owners(scratch: &Scratch<'_>) -> Checked {
    let (client, rival) = scratch.two_clients().await?;
    let (lease, rivals) = (scratch.kept_lease(&client).await?, scratch.kept_lease(&rival).await?);
    let held = client.create_ephemeral(&key("/k"), "same", lease).await?;
    let stolen = rival.create_ephemeral(&key("/k"), "same", rivals).await;
    let error = refused!(stolen, ErrorKind::AlreadyExists(_), "a create with the holder's value");
    check_eq!(error.holder(), Some(&held), "the holder");
    Ok(())
}

pub(crate) async fn a_persistent_entry_outlives_its_client(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let entry = client.create_persistent(&key("/k"), "v").await?;
    client.close().await?;
    check_eq!(
        other.get_latest(&entry.key).await?,
        Some(entry.clone()),
        "the entry after its client closed"
    );
    Ok(())
}

pub(crate) async fn created_rises_over_delete_and_recreate(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let mut last = 0;
    for round in 0..6 {
        let client = if round % 2 == 0 { &one } else { &two };
        let entry = client.create_persistent(&key("/k"), "v").await?;
        check!(
            entry.created > last,
            "expected created above {last}, saw {}",
            entry.created
        );
        last = entry.created;
        client.update(&entry.key, "w".into(), entry.version.into()).await?;
        client.delete(&entry.key, coord_api::Expect::Any).await?;
    }
    Ok(())
}

pub(crate) async fn created_rises_across_clients_and_parents(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&two).await?;
    let mut last = 0;
    for round in 0..4 {
        let created = [
            one.create_persistent(&key(&format!("/x/k{round}")), "v").await?.created,
            two.create_ephemeral(&key(&format!("/y/k{round}")), "v", lease)
                .await?
                .created,
            two.create_sequential(&key("/x"), "v", lease).await?.created,
            one.create_persistent(&key(&format!("/z{round}")), "v").await?.created,
        ];
        for created in created {
            check!(created > last, "expected created above {last}, saw {created}");
            last = created;
        }
    }
    Ok(())
}

pub(crate) async fn a_new_holder_has_a_higher_token(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let mut last = 0;
    for round in 0..6 {
        let client = if round % 2 == 0 { &one } else { &two };
        let lease = client.grant(TTL).await?.lease;
        let token = client.create_ephemeral(&key("/leader"), "v", lease).await?.created;
        check!(token > last, "expected a token above {last}, saw {token}");
        last = token;
        client.revoke(lease).await?;
    }
    Ok(())
}

pub(crate) async fn the_order_survives_a_recreated_parent(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let mut last = 0;
    for _ in 0..3 {
        for _ in 0..3 {
            let created = client.create_sequential(&key("/dir"), "v", lease).await?.created;
            check!(created > last, "expected created above {last}, saw {created}");
            last = created;
        }
        client.delete_recursive(&key("/dir")).await?;
    }
    Ok(())
}

pub(crate) async fn values_are_kept_byte_for_byte(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let values: [Bytes; 6] = [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"\xff\xfe\x00not utf-8\xc3\x28"),
        Bytes::from_static(b"  text\r\n\n"),
        Bytes::from_static(b"{\"json\": true}"),
        all_bytes.into(),
    ];
    for (index, value) in values.into_iter().enumerate() {
        let name = key(&format!("/dir/k{index}"));
        let created = client.create_persistent(&name, value.clone()).await?;
        check_eq!(created.value, value, "the value as created");
        let read = other.get_latest(&name).await?.map(|entry| entry.value);
        check_eq!(read, Some(value.clone()), "the value as read by another");
        client.update(&name, "between".into(), created.version.into()).await?;
        client.update(&name, value.clone(), coord_api::Expect::Any).await?;
        check_eq!(
            client.get(&name).await?.map(|entry| entry.value),
            Some(value.clone()),
            "the value as updated"
        );
        let listed = client.children(&key("/dir")).await?;
        let listed = listed
            .into_iter()
            .find(|entry| entry.key == name)
            .map(|entry| entry.value);
        check_eq!(listed, Some(value), "the value as listed");
    }
    Ok(())
}

pub(crate) async fn long_and_odd_names_work(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let longest = "x".repeat(255);
    let mut names: Vec<Key> = [
        "/A-Z.0_9~x:y@z",
        "/...",
        "/-",
        "/:",
        "/.hidden",
        "/UPPER/lower",
        "/upper/LOWER",
    ]
    .map(key)
    .into();
    names.push(key(&format!("/{longest}")));
    names.push(key(&format!("/{longest}/{longest}")));
    for name in &names {
        let value = name.as_str().to_owned();
        let entry = match client.create_persistent(name, value.clone()).await {
            // A parent among the names.
            Err(error) if error.holder().is_some() => client.update(name, value.into(), coord_api::Expect::Any).await?,
            created => created?,
        };
        check_eq!(client.get(name).await?, Some(entry), "{name}");
    }
    for name in &names {
        let value = client.get(name).await?.map(|entry| entry.value);
        check!(
            value.as_deref() == Some(name.as_str().as_bytes()),
            "{name}: expected its own name as value, saw {value:?}"
        );
    }
    Ok(())
}

pub(crate) async fn a_key_of_the_greatest_length_works(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.raw_client().await?;
    let mut name = scratch.prefix().to_string();
    while name.len() < 1024 {
        let left = 1024 - name.len();
        // Never a rest of one: a segment needs its slash and a letter.
        let segment = if left > 202 { 200 } else { left - 1 };
        name.push('/');
        name.push_str(&"x".repeat(segment));
    }
    let name = key(&name);
    let entry = client.create_persistent(&name, "v").await?;
    check_eq!(client.get(&name).await?, Some(entry.clone()), "the entry");
    client.delete(&name, entry.version.into()).await?;
    Ok(())
}

pub(crate) async fn create_with_ttl_binds_the_entry_to_a_lease_of_its_own(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    // The grant inside was answered after this one, and asks for the same.
    let before = granted(&client).await?;
    let (grant, entry) = client.create_with_ttl(&key("/k"), "v", TTL).await?;
    let answered = crate::lease::Answered {
        grant,
        at: client.env().now(),
    };
    check_eq!(entry.lease, Some(grant.lease), "the lease of the entry");
    check!(
        grant.lease != before.grant.lease,
        "expected a lease of its own, saw {grant:?}"
    );
    let again = client.create_with_ttl(&key("/k"), "w", TTL).await;
    let error = refused!(again, ErrorKind::AlreadyExists(_), "the same key with a ttl again");
    check_eq!(error.holder(), Some(&entry), "the holder");
    ends_in_time(&client, &observer, &entry.key, &answered).await
}
