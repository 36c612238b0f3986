use std::time::Duration;

use coord_api::{CoordinatorExt, Create, CreateMode, Entry, ErrorKind, Expect};

use crate::cut::Cut;
use crate::failure::Checked;
use crate::lease::{gone_by, gone_now, granted};
use crate::scratch::{Client, Scratch, key};

/// How long a request that was given up may be on its way in a healthy store before it is looked for.
const STRAY: Duration = Duration::from_millis(50);

/// Begins the create and drops it at that point; `false` if it was done before, so that its outcome is known.
async fn cut_short(client: &Client, create: &Create, cut: Cut) -> Checked<bool> {
    match cut.apply(client.env(), client.create(create)).await {
        None => Ok(true),
        Some(done) => {
            done?;
            Ok(false)
        }
    }
}

/// The one child of `/dir…`, which must be this entry, now and a little later.
async fn is_the_only_one(observer: &Client, entry: &Entry) -> Checked {
    for _ in 0..2 {
        check_eq!(
            observer.get_latest(&entry.key).await?,
            Some(entry.clone()),
            "the settled entry"
        );
        let dir = entry.key.parent().unwrap_or_else(coord_api::Key::root);
        check_eq!(
            observer.children(&dir).await?,
            vec![entry.clone()],
            "all that the create has made"
        );
        observer.env().sleep(STRAY).await;
    }
    Ok(())
}

pub(crate) async fn the_same_create_again_settles_a_dropped_one(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        for (kind, mode) in [("e", CreateMode::Ephemeral(lease)), ("p", CreateMode::Persistent)] {
            let name = key(&format!("/dir-{kind}{index}/k"));
            let create = Create::new(client.env(), name.clone(), "v", mode);
            if cut_short(&client, &create, cut).await? {
                let entry = client.create(&create).await?;
                check_eq!((&entry.key, entry.lease), (&name, mode.lease()), "the settled entry");
                check_eq!(entry.value, "v", "its value");
                is_the_only_one(&observer, &entry).await?;
            }
        }
    }
    Ok(())
}

pub(crate) async fn the_same_sequential_create_again_makes_no_second_entry(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        let name = key(&format!("/dir{index}"));
        let create = Create::new(client.env(), name.clone(), "v", CreateMode::Sequential(lease));
        if cut_short(&client, &create, cut).await? {
            let entry = client.create(&create).await?;
            check!(
                entry.key.is_child_of(&name) && entry.key.is_sequential() && entry.lease == Some(lease),
                "expected a sequential child of {name}, saw {entry:?}"
            );
            is_the_only_one(&observer, &entry).await?;
        }
    }
    Ok(())
}

pub(crate) async fn a_dropped_create_that_is_abandoned_leaves_nothing(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        for mode in [CreateMode::Ephemeral(lease), CreateMode::Persistent] {
            let name = key(&format!("/dir{index}/k"));
            let create = Create::new(client.env(), name.clone(), "v", mode);
            if cut_short(&client, &create, cut).await? {
                client.abandon(&create).await?;
                gone_now(&observer, &name).await?;
                check_eq!(client.get(&name).await?, None, "{name} as seen by who abandoned it");
                observer.env().sleep(STRAY).await;
                gone_now(&observer, &name).await?;
                client.abandon(&create).await?;
            } else {
                client.delete(&name, Expect::Any).await?;
            }
        }
    }
    Ok(())
}

pub(crate) async fn a_dropped_sequential_create_that_is_abandoned_leaves_nothing(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        let dir = key(&format!("/dir{index}"));
        let create = Create::new(client.env(), dir.clone(), "v", CreateMode::Sequential(lease));
        if cut_short(&client, &create, cut).await? {
            client.abandon(&create).await?;
            for _ in 0..2 {
                // The look at the latest brings the listing of this client up to date.
                observer.get_latest(&dir).await?;
                check_eq!(observer.children(&dir).await?, [], "what an abandoned create has left");
                check_eq!(client.children(&dir).await?, [], "the same, seen by who abandoned it");
                observer.env().sleep(STRAY).await;
            }
        }
    }
    Ok(())
}

pub(crate) async fn an_abandoned_create_can_no_longer_take_effect(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let modes = [
        CreateMode::Persistent,
        CreateMode::Ephemeral(lease),
        CreateMode::Sequential(lease),
    ];
    for (index, mode) in modes.into_iter().enumerate() {
        let name = key(&format!("/k{index}"));
        let create = Create::new(client.env(), name.clone(), "v", mode);
        // Never sent, as far as the store knows: to give it up is no error all the same.
        client.abandon(&create).await?;
        client.abandon(&create).await?;
        for _ in 0..2 {
            refused!(
                client.create(&create).await,
                ErrorKind::Abandoned,
                "an abandoned create ({mode:?})"
            );
        }
        if !matches!(mode, CreateMode::Sequential(_)) {
            gone_now(&observer, &name).await?;
        }
        check_eq!(client.children(&name).await?, [], "the children of {name}");
        // A fresh attempt is another one.
        client.create(&Create::new(client.env(), name, "v", mode)).await?;
    }
    Ok(())
}

pub(crate) async fn abandon_leaves_a_rivals_entry_alone(scratch: &Scratch<'_>) -> Checked {
    let (client, rival) = scratch.two_clients().await?;
    let (lease, rivals) = (scratch.kept_lease(&client).await?, scratch.kept_lease(&rival).await?);
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        let name = key(&format!("/k{index}"));
        // The same value: only the nonce tells them apart.
        let held = match index % 2 {
            0 => rival.create_ephemeral(&name, "v", rivals).await?,
            _ => rival.create_persistent(&name, "v").await?,
        };
        let create = Create::new(client.env(), name.clone(), "v", CreateMode::Ephemeral(lease));
        if let Some(done) = cut.apply(client.env(), client.create(&create)).await {
            let error = refused!(done, ErrorKind::AlreadyExists(_), "a create of a taken key");
            check_eq!(error.holder(), Some(&held), "the holder");
        }
        client.abandon(&create).await?;
        check_eq!(rival.get_latest(&name).await?, Some(held), "the rival's entry");
    }
    // Also one that the same client made by another attempt.
    let held = client.create_ephemeral(&key("/own"), "v", lease).await?;
    let create = Create::new(client.env(), key("/own"), "v", CreateMode::Ephemeral(lease));
    client.abandon(&create).await?;
    check_eq!(client.get(&held.key).await?, Some(held), "the entry of another attempt");
    Ok(())
}

pub(crate) async fn an_abandoned_entry_with_children_is_kept(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        let parent = key(&format!("/p{index}"));
        let create = Create::new(client.env(), parent.clone(), "v", CreateMode::Persistent);
        if !cut_short(&client, &create, cut).await? {
            continue;
        }
        // Makes the parent too, if the other create has not.
        let child = other.create_persistent(&key(&format!("/p{index}/c")), "v").await?;
        let made = other.get_latest(&parent).await?;
        match client.abandon(&create).await {
            Ok(()) => {}
            Err(error) => check!(
                matches!(error.kind(), ErrorKind::NotEmpty),
                "cut {cut:?}: expected the abandon to say that the entry is not empty, saw {error}"
            ),
        }
        check!(made.is_some(), "cut {cut:?}: expected a child to have its parent");
        check_eq!(other.get_latest(&parent).await?, made, "the entry that has a child");
        check_eq!(other.children(&parent).await?, vec![child], "the child");
    }
    Ok(())
}

pub(crate) async fn an_ordinary_sibling_survives_an_abandoned_sequential_create(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let mut expected = vec![
        client.create_persistent(&key("/dir/k"), "v").await?,
        client.create_sequential(&key("/dir"), "v", lease).await?,
        client.create_sequential(&key("/dir"), "v", lease).await?,
    ];
    let create = Create::new(client.env(), key("/dir"), "v", CreateMode::Sequential(lease));
    if cut_short(&client, &create, Cut::AfterTurns(3)).await? {
        client.abandon(&create).await?;
        expected.sort_by(|a, b| a.key.cmp(&b.key));
        check_eq!(client.children(&key("/dir")).await?, expected, "the siblings");
        observer.get_latest(&key("/dir")).await?;
        check_eq!(
            observer.children(&key("/dir")).await?,
            expected,
            "the siblings as another sees them"
        );
    }
    Ok(())
}

pub(crate) async fn a_dropped_create_leaves_nothing_longer_than_its_lease(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let answered = granted(&client).await?;
    let lease = answered.grant.lease;
    let names: Vec<_> = (0..Cut::POINTS.len()).map(|index| key(&format!("/k{index}"))).collect();
    for (name, cut) in names.iter().zip(Cut::POINTS) {
        for (name, mode) in [
            (name.clone(), CreateMode::Ephemeral(lease)),
            (key("/dir"), CreateMode::Sequential(lease)),
        ] {
            let create = Create::new(client.env(), name, "v", mode);
            cut_short(&client, &create, cut).await?;
        }
    }
    let latest = observer.env().now() + (answered.latest_end(&client) - client.env().now());
    for name in &names {
        gone_by(&observer, name, latest).await?;
    }
    loop {
        let asked = observer.env().now();
        observer.get_latest(&key("/dir")).await?;
        let left = observer.children(&key("/dir")).await?;
        if left.is_empty() {
            return Ok(());
        }
        check!(
            asked <= latest,
            "expected nothing of the dropped creates by {latest:?}, saw {left:?}"
        );
        observer.env().sleep(STRAY).await;
    }
}

pub(crate) async fn a_dropped_write_happens_once_or_not_at_all(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    for (index, cut) in Cut::POINTS.into_iter().enumerate() {
        let name = key(&format!("/k{index}"));
        let old = client.create_persistent(&name, "old").await?;
        let update = client.update(&name, "new".into(), old.version.into());
        if let Some(done) = cut.apply(client.env(), update).await {
            done?;
        }
        // Whatever became of it, it is no trap for the next writer: read again, write on what was read.
        let next = loop {
            let Some(seen) = observer.get_latest(&name).await? else {
                return Err(crate::Failure::new(format!("{name}: expected the entry, saw nothing")));
            };
            check!(
                seen.value == "old" || seen.value == "new",
                "expected old or new, saw {seen:?}"
            );
            match observer.update(&name, "next".into(), seen.version.into()).await {
                Err(error) if matches!(error.kind(), ErrorKind::VersionMismatch(_)) => {}
                done => break done?,
            }
        };
        observer.env().sleep(STRAY).await;
        check_eq!(
            observer.get_latest(&name).await?,
            Some(next),
            "{name} after a later write"
        );
    }
    Ok(())
}
