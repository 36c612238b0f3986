use std::time::Duration;

use coord_api::{Coordinator, CoordinatorExt, Create, CreateMode, ErrorKind, Expect, Operation, Target};

use crate::failure::Checked;
use crate::lease::{ALLOWANCE, TTL, gone_now};
use crate::scratch::{Scratch, key};
use crate::view::View;

pub(crate) async fn close_removes_what_its_leases_hold(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let mut names = Vec::new();
    for index in 0..3 {
        let lease = client.grant(TTL).await?.lease;
        let name = key(&format!("/k{index}"));
        names.push(client.create_ephemeral(&name, "v", lease).await?.key);
        names.push(client.create_sequential(&key("/dir"), "v", lease).await?.key);
    }
    let staying = scratch.kept_lease(&observer).await?;
    let beside = observer.create_ephemeral(&key("/beside"), "v", staying).await?;
    client.close().await?;
    for name in &names {
        gone_now(&observer, name).await?;
    }
    check_eq!(
        observer.get_latest(&beside.key).await?,
        Some(beside),
        "another client's entry"
    );
    Ok(())
}

pub(crate) async fn close_is_idempotent(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    client.grant(TTL).await?;
    let (one, two) = futures::join!(client.close(), client.close());
    one?;
    two?;
    client.close().await?;
    client.within(Duration::from_secs(1)).close().await?;
    Ok(())
}

pub(crate) async fn every_call_after_close_says_closed(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = client.grant(TTL).await?.lease;
    let entry = client.create_sequential(&key("/dir"), "v", lease).await?;
    let before = client.within(Duration::from_secs(5));
    client.close().await?;
    let after = client.within(Duration::from_secs(5));
    for client in [&client, &before, &after] {
        all_closed(&**client, &entry).await?;
    }
    Ok(())
}

/// That each method of the contract says `Closed`, definitely, and names itself.
async fn all_closed(client: &dyn Coordinator, entry: &coord_api::Entry) -> Checked {
    let name = key("/k");
    let lease = entry.lease.unwrap_or(coord_api::LeaseId(1));
    let create = Create::new(client.env(), name.clone(), "v", CreateMode::Persistent);
    let results = [
        (Operation::Grant, client.grant(TTL).await.map(drop)),
        (Operation::Renew, client.renew(lease).await.map(drop)),
        (Operation::Revoke, client.revoke(lease).await),
        (Operation::Create, client.create(&create).await.map(drop)),
        (Operation::Abandon, client.abandon(&create).await),
        (Operation::Get, client.get(&name).await.map(drop)),
        (Operation::GetLatest, client.get_latest(&name).await.map(drop)),
        (Operation::Children, client.children(&name).await.map(drop)),
        (
            Operation::Update,
            client.update(&name, "v".into(), Expect::Any).await.map(drop),
        ),
        (Operation::Delete, client.delete(&name, Expect::Any).await),
        (Operation::Standing, client.standing(entry).await.map(drop)),
        (
            Operation::Watch,
            client.watch(&Target::Key(name.clone())).await.map(drop),
        ),
    ];
    for (operation, result) in results {
        let error = refused!(result, ErrorKind::Closed, "{operation} after close");
        check_eq!(error.operation(), operation, "the operation named after close");
    }
    Ok(())
}

pub(crate) async fn close_ends_every_watch_with_closed(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    client.create_persistent(&key("/dir/k"), "v").await?;
    let mut read = View::open(&*client, Target::Key(key("/dir/k"))).await?;
    let mut unread = View::unread(&*client, Target::Children(key("/dir"))).await?;
    // Somebody waits on it at the moment of the close.
    let waiting = client.env().spawn({
        let mut watch = client.watch(&Target::Key(key("/dir/other"))).await?;
        async move {
            loop {
                match watch.next().await {
                    Some(Ok(_)) => {}
                    end => return end,
                }
            }
        }
    });
    tokio::task::yield_now().await;
    client.close().await?;
    for view in [&mut read, &mut unread] {
        let error = view.end().await?;
        check!(
            error.is_closed() && error.is_definite(),
            "expected the watch to end with Closed, saw {error:?}"
        );
    }
    let deadline = client.env().now() + ALLOWANCE;
    match client.env().timeout_at(deadline, waiting.join()).await {
        Some(Some(Some(Err(error)))) if error.is_closed() => Ok(()),
        other => Err(crate::Failure::new(format!(
            "a waiting reader: expected Closed, saw {other:?}"
        ))),
    }
}

pub(crate) async fn closing_a_view_with_a_deadline_closes_the_whole(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let view = client.within(Duration::from_secs(10));
    // Leases are shared both ways.
    let lease = view.grant(TTL).await?.lease;
    client.create_ephemeral(&key("/k"), "v", lease).await?;
    client.renew(lease).await?;
    view.close().await?;
    refused!(
        client.get(&key("/k")).await,
        ErrorKind::Closed,
        "a call after its view was closed"
    );
    gone_now(&observer, &key("/k")).await
}

pub(crate) async fn calls_in_flight_at_close_end(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = client.grant(TTL).await?.lease;
    let calls = futures::future::join_all((0..20).map(|index| {
        let client = client.clone();
        async move {
            match index % 2 {
                0 => client.get(&key("/k")).await.map(drop),
                _ => client
                    .create_ephemeral(&key(&format!("/e{index}")), "v", lease)
                    .await
                    .map(drop),
            }
        }
    }));
    let close = async {
        tokio::task::yield_now().await;
        client.close().await
    };
    let limit = client.env().now() + client.capabilities().call_deadline + ALLOWANCE;
    let Some((results, closed)) = client
        .env()
        .timeout_at(limit, futures::future::join(calls, close))
        .await
    else {
        return Err(crate::Failure::new(
            "expected calls and close to end by their deadline, saw them hang",
        ));
    };
    closed?;
    for error in results.into_iter().filter_map(Result::err) {
        let fits = error.is_closed() || error.is_transient() || error.is_lease_lost();
        check!(
            fits,
            "a call beside a close: expected success, Closed, LeaseLost or no answer, saw {error:?}"
        );
    }
    // Whatever got through went with the lease; what did not must not come later.
    for _ in 0..2 {
        for index in 0..20 {
            gone_now(&observer, &key(&format!("/e{index}"))).await?;
        }
        observer.env().sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

pub(crate) async fn one_clients_close_leaves_the_others_open(scratch: &Scratch<'_>) -> Checked {
    let (closing, staying) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&staying).await?;
    let mut view = View::open(&*staying, Target::Children(key("/dir"))).await?;
    closing.create_persistent(&key("/dir/before"), "v").await?;
    closing.close().await?;
    staying.create_ephemeral(&key("/dir/after"), "v", lease).await?;
    staying.renew(lease).await?;
    view.until("both entries", |view| view.entries().len() == 2).await
}
