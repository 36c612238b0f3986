use coord_api::{CoordinatorExt, Entry, Expect, Key, Target, WatchEvent};

use crate::failure::Checked;
use crate::lease::{ALLOWANCE, TTL, granted};
use crate::scratch::{Scratch, key};
use crate::view::View;

/// Waits until the watch shows exactly these entries.
async fn shows(view: &mut View, what: &str, expected: &[Entry]) -> Checked {
    view.until(what, |view| view.entries() == expected).await
}

pub(crate) async fn a_watch_of_a_key_tells_its_life(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&writer).await?;
    let mut view = View::open(&*watcher, Target::Key(key("/dir/k"))).await?;
    check_eq!(view.entries(), [], "the state of a missing key");
    for round in 0..3 {
        let created = match round {
            1 => writer.create_ephemeral(&key("/dir/k"), "0", lease).await?,
            _ => writer.create_persistent(&key("/dir/k"), "0").await?,
        };
        shows(&mut view, "the created entry", std::slice::from_ref(&created)).await?;
        let updated = writer.update(&created.key, "1".into(), created.version.into()).await?;
        shows(&mut view, "the updated entry", std::slice::from_ref(&updated)).await?;
        writer.delete(&updated.key, updated.version.into()).await?;
        shows(&mut view, "nothing after the delete", &[]).await?;
    }
    Ok(())
}

pub(crate) async fn changes_come_as_put_and_delete(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let mut view = View::open(&*client, Target::Key(key("/k"))).await?;
    let created = client.create_persistent(&key("/k"), "v").await?;
    // A Resync in the place of a change is always allowed: it says the same.
    match view.step().await? {
        WatchEvent::Put(entry) => check_eq!(entry, created, "the put"),
        WatchEvent::Resync(entries) => check_eq!(entries, vec![created.clone()], "the new state"),
        other => return Err(crate::Failure::new(format!("expected a Put, saw {other:?}"))),
    }
    let deleted = WatchEvent::Delete {
        key: created.key.clone(),
        created: created.created,
    };
    client.delete(&created.key, created.version.into()).await?;
    match view.step().await? {
        WatchEvent::Resync(entries) => check_eq!(entries, [], "the new state after the delete"),
        event => check_eq!(event, deleted, "the delete"),
    }
    Ok(())
}

pub(crate) async fn a_watch_starts_with_what_exists(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let mut expected = vec![
        client.create_persistent(&key("/dir/b"), "b").await?,
        client.create_ephemeral(&key("/dir/a"), "a", lease).await?,
        client.create_sequential(&key("/dir"), "s", lease).await?,
    ];
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    let children = View::open(&*client, Target::Children(key("/dir"))).await?;
    check_eq!(children.entries(), expected, "the first state of the children");
    for entry in expected {
        let view = View::open(&*client, Target::Key(entry.key.clone())).await?;
        check_eq!(view.entries(), vec![entry], "the first state of a key");
    }
    Ok(())
}

pub(crate) async fn the_state_holds_every_write_that_had_finished(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    for round in 0..15 {
        let entry = writer.create_persistent(&key(&format!("/dir{round}/k")), "v").await?;
        let view = View::open(&*watcher, Target::Key(entry.key.clone())).await?;
        check_eq!(
            view.entries(),
            vec![entry.clone()],
            "round {round}: the state of the key"
        );
        let updated = writer.update(&entry.key, "w".into(), entry.version.into()).await?;
        let view = View::open(&*watcher, Target::Children(key(&format!("/dir{round}")))).await?;
        check_eq!(
            view.entries(),
            vec![updated.clone()],
            "round {round}: the state of the children"
        );
        writer.delete(&entry.key, updated.version.into()).await?;
        let view = View::open(&*watcher, Target::Key(entry.key.clone())).await?;
        check_eq!(view.entries(), [], "round {round}: the state after the delete");
    }
    Ok(())
}

pub(crate) async fn a_watch_of_children_tells_their_lives(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&writer).await?;
    // The parent does not exist yet.
    let mut view = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    check_eq!(view.entries(), [], "the state of missing children");
    let a = writer.create_persistent(&key("/dir/a"), "0").await?;
    shows(&mut view, "the first child", std::slice::from_ref(&a)).await?;
    let b = writer.create_ephemeral(&key("/dir/b"), "0", lease).await?;
    shows(&mut view, "the second child", &[a.clone(), b.clone()]).await?;
    let s = writer.create_sequential(&key("/dir"), "0", lease).await?;
    shows(&mut view, "the sequential child", &[a.clone(), b.clone(), s.clone()]).await?;
    let b = writer.update(&b.key, "1".into(), b.version.into()).await?;
    shows(&mut view, "the changed child", &[a.clone(), b.clone(), s.clone()]).await?;
    writer.delete(&a.key, a.version.into()).await?;
    shows(&mut view, "the deleted child gone", &[b, s]).await?;
    writer.revoke(lease).await?;
    shows(&mut view, "nothing after the revoke", &[]).await
}

pub(crate) async fn a_watch_of_children_tells_nothing_else(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&writer).await?;
    let child = writer.create_persistent(&key("/dir/a"), "0").await?;
    let mut view = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    let mut one = View::open(&*watcher, Target::Key(key("/dir/a"))).await?;
    for beside in [
        "/dir/a/grandchild",
        "/dir2",
        "/dir2/a",
        "/dir-",
        "/di",
        "/dir/a2/x",
        "/dir/aa",
    ] {
        let entry = writer.create_persistent(&key(beside), "0").await?;
        writer.update(&entry.key, "1".into(), Expect::Any).await?;
    }
    writer.create_sequential(&key("/dir/a"), "0", lease).await?;
    writer.update(&key("/dir"), "1".into(), Expect::Any).await?;
    for gone in [
        "/dir/a/grandchild",
        "/dir2/a",
        "/dir-",
        "/di",
        "/dir/a2/x",
        "/dir/a2",
        "/dir/aa",
    ] {
        writer.delete(&key(gone), Expect::Any).await?;
    }
    // Every event on the way is checked against the target; then this one ends the wait.
    let child = writer.update(&child.key, "last".into(), child.version.into()).await?;
    shows(&mut view, "the last update alone", std::slice::from_ref(&child)).await?;
    shows(&mut one, "the last update alone", &[child]).await
}

pub(crate) async fn the_children_of_the_root_can_be_watched(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let mut view = View::open(&*client, Target::Children(Key::root())).await?;
    let entry = client.create_persistent(&key("/k"), "v").await?;
    shows(&mut view, "the child of the root", &[entry]).await?;
    client.delete(&key("/k"), Expect::Any).await?;
    shows(&mut view, "nothing after the delete", &[]).await
}

pub(crate) async fn a_recreated_key_shows_a_new_created(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let mut last = writer.create_persistent(&key("/dir/k"), "same").await?;
    let mut one = View::open(&*watcher, Target::Key(key("/dir/k"))).await?;
    let mut all = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    for _ in 0..10 {
        writer.delete(&last.key, last.version.into()).await?;
        let new = writer.create_persistent(&key("/dir/k"), "same").await?;
        shows(&mut one, "the new incarnation", std::slice::from_ref(&new)).await?;
        shows(&mut all, "the new incarnation", std::slice::from_ref(&new)).await?;
        last = new;
    }
    Ok(())
}

pub(crate) async fn a_watch_tells_when_a_lease_has_ended(scratch: &Scratch<'_>) -> Checked {
    let (watcher, owner) = scratch.two_clients().await?;
    let answered = granted(&owner).await?;
    let entry = owner
        .create_ephemeral(&key("/dir/k"), "v", answered.grant.lease)
        .await?;
    let mut one = View::open(&*watcher, Target::Key(key("/dir/k"))).await?;
    let mut all = View::open(&*owner, Target::Children(key("/dir"))).await?;
    check_eq!(one.entries(), vec![entry], "the state before the end");
    let latest = answered.latest_end(&owner) + ALLOWANCE;
    for view in [&mut one, &mut all] {
        while !view.entries().is_empty() {
            let told = owner.env().timeout_at(latest, view.step()).await;
            match told {
                Some(told) => drop(told?),
                None => {
                    return Err(crate::Failure::new(
                        "expected an event when the lease ended, saw none in time",
                    ));
                }
            }
        }
        let now = owner.env().now();
        check!(
            now >= answered.grant.valid_until,
            "expected the entry until {:?}, saw its end at {now:?}",
            answered.grant.valid_until
        );
    }
    Ok(())
}

pub(crate) async fn a_watch_tells_of_a_revoke_and_of_a_close(scratch: &Scratch<'_>) -> Checked {
    let (watcher, owner) = scratch.two_clients().await?;
    let revoked = owner.grant(TTL).await?.lease;
    let closed = scratch.kept_lease(&owner).await?;
    let r = owner.create_ephemeral(&key("/dir/r"), "v", revoked).await?;
    let c = owner.create_sequential(&key("/dir"), "v", closed).await?;
    let mut all = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    let mut one = View::open(&*watcher, Target::Key(c.key.clone())).await?;
    check_eq!(all.entries(), vec![r, c.clone()], "the state");
    owner.revoke(revoked).await?;
    shows(&mut all, "only the other lease's entry", &[c]).await?;
    owner.close().await?;
    shows(&mut all, "nothing after the close", &[]).await?;
    shows(&mut one, "nothing after the close", &[]).await
}

pub(crate) async fn two_watches_of_one_target_both_tell(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let mut views = Vec::new();
    for _ in 0..3 {
        views.push(View::open(&*watcher, Target::Key(key("/dir/k"))).await?);
        views.push(View::open(&*watcher, Target::Children(key("/dir"))).await?);
    }
    let entry = writer.create_persistent(&key("/dir/k"), "v").await?;
    for view in &mut views {
        shows(view, "the entry in every watch", std::slice::from_ref(&entry)).await?;
    }
    writer.delete(&entry.key, entry.version.into()).await?;
    for view in &mut views {
        shows(view, "the delete in every watch", &[]).await?;
    }
    Ok(())
}

pub(crate) async fn dropping_a_watch_leaves_the_others(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    for round in 0..5 {
        let name = key(&format!("/dir{round}/k"));
        let mut staying = View::open(&*client, Target::Key(name.clone())).await?;
        let going = View::open(&*client, Target::Key(name.clone())).await?;
        let unread = View::unread(&*client, Target::Children(key(&format!("/dir{round}")))).await?;
        drop((going, unread));
        let entry = client.create_persistent(&name, "v").await?;
        shows(&mut staying, "the entry", &[entry]).await?;
        // A fresh one of the same target works, too.
        let again = View::open(&*client, Target::Key(name.clone())).await?;
        check_eq!(again.entries(), staying.entries(), "the state of a fresh watch");
        drop(staying);
        let mut again = again;
        client.delete(&name, Expect::Any).await?;
        shows(&mut again, "nothing after the delete", &[]).await?;
    }
    Ok(())
}
