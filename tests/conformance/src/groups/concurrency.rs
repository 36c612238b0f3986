use coord_api::{CoordinatorExt, ErrorKind, Expect};
use futures::future::{join_all, try_join_all};

use super::reads::number;
use crate::failure::{Checked, Failure};
use crate::scratch::{Client, Scratch, key};

pub(crate) async fn of_two_creates_of_one_key_exactly_one_wins(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let (first, second) = (scratch.kept_lease(&one).await?, scratch.kept_lease(&two).await?);
    for round in 0..25 {
        let name = key(&format!("/dir{}/k{round}", round % 5));
        let (a, b) = futures::join!(
            one.create_ephemeral(&name, "one", first),
            two.create_ephemeral(&name, "two", second)
        );
        let (won, lost) = match (a, b) {
            (Ok(won), lost) => (won, lost),
            (lost, Ok(won)) => (won, lost),
            (a, b) => {
                return Err(Failure::new(format!(
                    "round {round}: expected a winner, saw {a:?} and {b:?}"
                )));
            }
        };
        let error = refused!(lost, ErrorKind::AlreadyExists(_), "round {round}: the loser");
        check_eq!(error.holder(), Some(&won), "round {round}: who the loser says has won");
        check_eq!(
            one.get_latest(&name).await?,
            Some(won),
            "round {round}: the winner's entry"
        );
    }
    Ok(())
}

/// Adds one by compare-and-swap, as often as it takes.
async fn increment(client: &Client) -> Checked {
    let name = key("/counter");
    loop {
        let Some(seen) = client.get_latest(&name).await? else {
            return Err(Failure::new("the counter is gone"));
        };
        let next = number(&seen)? + 1;
        match client.update(&name, next.to_string().into(), seen.version.into()).await {
            Err(error) if matches!(error.kind(), ErrorKind::VersionMismatch(_)) => {}
            done => {
                done?;
                return Ok(());
            }
        }
    }
}

pub(crate) async fn compare_and_swap_loses_no_increment(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    one.create_persistent(&key("/counter"), "0").await?;
    try_join_all((0..4).map(|task| {
        let client = if task % 2 == 0 { one.clone() } else { two.clone() };
        async move {
            for _ in 0..15 {
                increment(&client).await?;
            }
            Checked::Ok(())
        }
    }))
    .await?;
    let last = one.get_latest(&key("/counter")).await?;
    check_eq!(
        last.as_ref().map(number).transpose()?,
        Some(60),
        "the counter after 60 increments"
    );
    Ok(())
}

pub(crate) async fn a_child_never_lacks_its_parent(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&two).await?;
    for round in 0..30 {
        let parent = key(&format!("/p{round}"));
        let child = key(&format!("/p{round}/c"));
        one.create_persistent(&parent, "v").await?;
        let create = async {
            match round % 3 {
                0 => two.create_persistent(&child, "v").await,
                1 => two.create_ephemeral(&child, "v", lease).await,
                _ => two.create_sequential(&parent, "v", lease).await,
            }
        };
        let (deleted, created) = futures::join!(one.delete(&parent, Expect::Any), create);
        // The create never fails: it makes the parent anew, or the delete finds the child.
        let created = created?;
        if deleted.is_err() {
            refused!(
                deleted,
                ErrorKind::NotEmpty,
                "round {round}: a delete beside the create of a child"
            );
        }
        let (found, above) = (one.get_latest(&created.key).await?, one.get_latest(&parent).await?);
        check_eq!(found, Some(created), "round {round}: the child");
        check!(
            above.is_some(),
            "round {round}: expected the parent of a child to exist, saw none"
        );
    }
    Ok(())
}

pub(crate) async fn an_ephemeral_entry_and_its_child_never_both_come_into_being(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&one).await?;
    for round in 0..25 {
        let parent = key(&format!("/p{round}"));
        let child = key(&format!("/p{round}/c"));
        let (ephemeral, below) = futures::join!(
            one.create_ephemeral(&parent, "v", lease),
            two.create_persistent(&child, "v")
        );
        match (ephemeral, below) {
            (Ok(_), refused) => drop(refused!(
                refused,
                ErrorKind::EphemeralParent(_),
                "round {round}: a create below an ephemeral entry"
            )),
            (refused, Ok(_)) => drop(refused!(
                refused,
                ErrorKind::AlreadyExists(_),
                "round {round}: an ephemeral create where a parent is"
            )),
            (a, b) => {
                return Err(Failure::new(format!(
                    "round {round}: expected one to win, saw {a:?}, {b:?}"
                )));
            }
        }
    }
    Ok(())
}

pub(crate) async fn a_conditional_write_never_hits_a_recreated_entry(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    for round in 0..25 {
        let name = key(&format!("/k{}", round % 3));
        let old = one.create_persistent(&name, "old").await?;
        let recreate = async {
            two.delete(&name, Expect::Any).await?;
            two.create_persistent(&name, "new").await
        };
        let (written, new) = futures::join!(one.update(&name, "stray".into(), old.version.into()), recreate);
        let new = new?;
        if let Err(error) = written {
            let fits = matches!(error.kind(), ErrorKind::VersionMismatch(_) | ErrorKind::NotFound);
            check!(
                fits && error.is_definite(),
                "round {round}: expected a refusal of the late write, saw {error:?}"
            );
        }
        check_eq!(
            one.get_latest(&name).await?,
            Some(new.clone()),
            "round {round}: the new entry"
        );
        two.delete(&name, new.version.into()).await?;
    }
    Ok(())
}

pub(crate) async fn of_two_conditional_deletes_one_wins(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    for round in 0..20 {
        let name = key(&format!("/k{round}"));
        let entry = one.create_persistent(&name, "v").await?;
        let (a, b) = futures::join!(
            one.delete(&name, entry.version.into()),
            two.delete(&name, entry.version.into())
        );
        let lost = match (a, b) {
            (Ok(()), lost) | (lost, Ok(())) => lost,
            (a, b) => {
                return Err(Failure::new(format!(
                    "round {round}: expected one to win, saw {a:?}, {b:?}"
                )));
            }
        };
        refused!(lost, ErrorKind::NotFound, "round {round}: the second delete");
    }
    Ok(())
}

pub(crate) async fn many_calls_of_one_client_run_side_by_side(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let leases = [scratch.kept_lease(&client).await?, scratch.kept_lease(&client).await?];
    let results = join_all((0..64_usize).map(|index| {
        let client = client.clone();
        let lease = leases[index % 2];
        async move {
            let name = key(&format!("/dir{}/k{index}", index % 4));
            let created = match index % 3 {
                0 => client.create_persistent(&name, "0").await?,
                1 => client.create_ephemeral(&name, "0", lease).await?,
                _ => client.create_sequential(&name, "0", lease).await?,
            };
            let updated = client.update(&created.key, "1".into(), created.version.into()).await?;
            check_eq!(
                client.get(&created.key).await?,
                Some(updated.clone()),
                "call {index}: the entry"
            );
            client.delete(&created.key, updated.version.into()).await?;
            check_eq!(
                client.get(&created.key).await?,
                None,
                "call {index}: the entry after its delete"
            );
            Checked::Ok(())
        }
    }))
    .await;
    results.into_iter().collect()
}
