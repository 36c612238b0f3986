use std::sync::Arc;

use coord_api::{CoordinatorExt, Entry, ErrorKind, Expect, Key, Prefixed, Target};

use crate::failure::Checked;
use crate::lease::gone_now;
use crate::scratch::{Client, Scratch, key};
use crate::view::View;

fn below(client: &Client, prefix: &str) -> Client {
    Arc::new(Prefixed::new(client.clone(), key(prefix)))
}

pub(crate) async fn keys_are_as_seen_from_inside_the_prefix(scratch: &Scratch<'_>) -> Checked {
    let outside = scratch.raw_client().await?;
    let client: Client = Arc::new(Prefixed::new(outside.clone(), scratch.prefix().clone()));
    let inner = below(&client, "/in/ner");
    let lease = scratch.kept_lease(&inner).await?;
    let mut view = View::open(&*inner, Target::Children(key("/dir"))).await?;
    let fixed = inner.create_ephemeral(&key("/dir/k"), "v", lease).await?;
    let sequential = inner.create_sequential(&key("/dir"), "v", lease).await?;
    check_eq!(fixed.key, key("/dir/k"), "the key of a create");
    check!(
        sequential.key.is_child_of(&key("/dir")),
        "expected a child of /dir, saw {}",
        sequential.key
    );
    check_eq!(
        inner.children(&key("/dir")).await?,
        vec![fixed.clone(), sequential.clone()],
        "the children"
    );
    check_eq!(
        inner.standing(&sequential).await?.own,
        Some(sequential.clone()),
        "the standing"
    );
    view.until("both entries under the names from inside", |view| {
        view.entries() == [fixed.clone(), sequential.clone()]
    })
    .await?;
    let taken = inner.create_persistent(&key("/dir/k"), "v").await;
    let error = refused!(taken, ErrorKind::AlreadyExists(_), "a create of a taken key");
    check_eq!(error.key(), Some(&key("/dir/k")), "the key in the refusal");
    check_eq!(error.holder(), Some(&fixed), "the holder in the refusal");
    let child = inner.create_persistent(&key("/dir/k/child"), "v").await;
    let error = refused!(
        child,
        ErrorKind::EphemeralParent(_),
        "a create below an ephemeral entry"
    );
    check_eq!(
        *error.kind(),
        ErrorKind::EphemeralParent(key("/dir/k")),
        "the ancestor in the refusal"
    );
    // From outside it has its whole name.
    let whole = key(&format!("{}/in/ner/dir/k", scratch.prefix()));
    let expected = Entry {
        key: whole.clone(),
        ..fixed
    };
    check_eq!(
        outside.get_latest(&whole).await?,
        Some(expected),
        "the entry as seen from outside"
    );
    Ok(())
}

pub(crate) async fn two_prefixes_do_not_see_each_other(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let (left, right) = (below(&client, "/app"), below(&other, "/app2"));
    let mut watched = View::open(&*right, Target::Children(Key::root())).await?;
    let entry = left.create_persistent(&key("/k"), "left").await?;
    gone_now(&right, &key("/k")).await?;
    check_eq!(right.children(&Key::root()).await?, [], "what the other prefix lists");
    let mine = right.create_persistent(&key("/k"), "right").await?;
    watched
        .until("its own entry", |view| view.entries() == [mine.clone()])
        .await?;
    right.delete(&key("/k"), Expect::Any).await?;
    check_eq!(
        left.get_latest(&key("/k")).await?,
        Some(entry),
        "the entry of the first prefix"
    );
    Ok(())
}
