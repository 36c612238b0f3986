use coord_api::{CoordinatorExt, ErrorKind, Expect};

use crate::failure::Checked;
use crate::lease::TTL;
use crate::scratch::{Scratch, key};

pub(crate) async fn missing_parents_are_made_empty_and_persistent(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    client.create_persistent(&key("/p/a/b/c"), "v").await?;
    client.create_ephemeral(&key("/e/a/b"), "v", lease).await?;
    client.create_sequential(&key("/s/a"), "v", lease).await?;
    for parent in ["/p", "/p/a", "/p/a/b", "/e", "/e/a", "/s", "/s/a"].map(key) {
        let Some(entry) = other.get_latest(&parent).await? else {
            return Err(crate::Failure::new(format!(
                "expected the parent {parent}, saw nothing"
            )));
        };
        check_eq!(entry.value, "", "the value of {parent}");
        check_eq!(entry.lease, None, "the lease of {parent}");
        check_eq!(client.get(&parent).await?, Some(entry), "{parent} as its maker sees it");
    }
    Ok(())
}

pub(crate) async fn parents_that_exist_stay_as_they_are(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let parent = client.create_persistent(&key("/p"), "kept").await?;
    client.create_persistent(&key("/p/a"), "v").await?;
    client.create_ephemeral(&key("/p/b"), "v", lease).await?;
    client.create_sequential(&key("/p"), "v", lease).await?;
    check_eq!(client.get(&parent.key).await?, Some(parent), "the parent");
    Ok(())
}

pub(crate) async fn parents_are_kept_when_their_children_go(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = client.grant(TTL).await?.lease;
    client.create_ephemeral(&key("/e/k"), "v", lease).await?;
    client.create_sequential(&key("/s"), "v", lease).await?;
    client.create_persistent(&key("/p/k"), "v").await?;
    client.revoke(lease).await?;
    client.delete(&key("/p/k"), Expect::Any).await?;
    for parent in ["/e", "/s", "/p"].map(key) {
        let found = other.get_latest(&parent).await?;
        check!(found.is_some(), "expected {parent} to be kept, saw nothing");
        check_eq!(other.children(&parent).await?, [], "the children of {parent}");
    }
    Ok(())
}

pub(crate) async fn a_parent_that_was_deleted_is_made_again(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for _ in 0..5 {
        client.create_sequential(&key("/dir"), "v", lease).await?;
        // By another client, so that what this one remembers of the parent is wrong.
        other.delete_recursive(&key("/dir")).await?;
        client.create_ephemeral(&key("/dir/a/b"), "v", lease).await?;
        other.delete_recursive(&key("/dir")).await?;
    }
    Ok(())
}

pub(crate) async fn an_ephemeral_entry_has_no_children(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let (lease, others) = (scratch.kept_lease(&client).await?, scratch.kept_lease(&other).await?);
    client.create_ephemeral(&key("/e"), "v", lease).await?;
    let sequential = client.create_sequential(&key("/dir"), "v", lease).await?.key;
    for parent in [key("/e"), sequential] {
        let child = key(&format!("{parent}/c"));
        let grandchild = key(&format!("{parent}/c/d"));
        for (who, lease) in [(&client, lease), (&other, others)] {
            let results = [
                who.create_persistent(&child, "v").await,
                who.create_ephemeral(&child, "v", lease).await,
                who.create_sequential(&parent, "v", lease).await,
                who.create_persistent(&grandchild, "v").await,
                who.create_ephemeral(&grandchild, "v", lease).await,
                who.create_sequential(&child, "v", lease).await,
            ];
            for result in results {
                let error = refused!(result, ErrorKind::EphemeralParent(_), "a create below {parent}");
                check_eq!(
                    *error.kind(),
                    ErrorKind::EphemeralParent(parent.clone()),
                    "the ancestor"
                );
            }
        }
        check_eq!(other.get_latest(&child).await?, None, "the refused child");
        check_eq!(client.children(&parent).await?, [], "the children of {parent}");
    }
    Ok(())
}

pub(crate) async fn delete_refuses_a_key_with_children(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    client.create_persistent(&key("/p/k"), "v").await?;
    client.create_ephemeral(&key("/e/k"), "v", lease).await?;
    client.create_sequential(&key("/s"), "v", lease).await?;
    for parent in ["/p", "/e", "/s"].map(key) {
        let Some(entry) = other.get_latest(&parent).await? else {
            return Err(crate::Failure::new(format!(
                "expected the parent {parent}, saw nothing"
            )));
        };
        for who in [&client, &other] {
            refused!(
                who.delete(&parent, Expect::Any).await,
                ErrorKind::NotEmpty,
                "a delete of {parent}"
            );
            let conditional = who.delete(&parent, entry.version.into()).await;
            refused!(conditional, ErrorKind::NotEmpty, "a conditional delete of {parent}");
        }
        check_eq!(
            other.get_latest(&parent).await?,
            Some(entry),
            "{parent} after the refusal"
        );
    }
    Ok(())
}

pub(crate) async fn a_sibling_with_a_longer_name_is_no_child(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    for name in ["/job", "/job2", "/job-3", "/job.4", "/job2/x", "/jo", "/job0"] {
        client.create_persistent(&key(name), "v").await?;
    }
    client.create_ephemeral(&key("/job:5"), "v", lease).await?;
    check_eq!(client.children(&key("/job")).await?, [], "the children of /job");
    // Neither its siblings nor their children keep it from being deleted, nor go with it.
    client.delete_recursive(&key("/job")).await?;
    let left: Vec<_> = client.children(&coord_api::Key::root()).await?;
    let left: Vec<_> = left.iter().map(|entry| entry.key.as_str()).collect();
    check_eq!(
        left,
        ["/jo", "/job-3", "/job.4", "/job0", "/job2", "/job:5"],
        "what is left"
    );
    // An ephemeral sibling whose name begins alike is no ephemeral parent.
    client.create_ephemeral(&key("/eph"), "v", lease).await?;
    client.create_persistent(&key("/eph2/x"), "v").await?;
    Ok(())
}

pub(crate) async fn delete_recursive_takes_everything_below(scratch: &Scratch<'_>) -> Checked {
    let (client, other) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    for name in ["/t/a/b/c", "/t/a/d", "/t/e", "/kept/f"] {
        client.create_persistent(&key(name), "v").await?;
    }
    client.create_ephemeral(&key("/t/a/g"), "v", lease).await?;
    client.create_sequential(&key("/t/e"), "v", lease).await?;
    client.delete_recursive(&key("/t")).await?;
    check_eq!(other.get_latest(&key("/t")).await?, None, "/t");
    check_eq!(other.get_latest(&key("/t/a/b/c")).await?, None, "/t/a/b/c");
    check!(
        other.get_latest(&key("/kept/f")).await?.is_some(),
        "expected /kept/f to be kept, saw nothing"
    );
    refused!(
        client.delete_recursive(&key("/t")).await,
        ErrorKind::NotFound,
        "deleting it again"
    );
    Ok(())
}
