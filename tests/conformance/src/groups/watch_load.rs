use std::time::Duration;

use coord_api::{CoordinatorExt, Expect, Key, Target};
use futures::future::try_join_all;

use super::reads::number;
use crate::failure::Checked;
use crate::scratch::{Client, Scratch, key};
use crate::view::{PATIENCE, View};

/// Reads until the number at `/dir/k` is `last`, and checks that it only rises on the way.
async fn rises_to(view: &mut View, last: u64) -> Checked {
    let name = key("/dir/k");
    let mut newest = 0;
    loop {
        if let Some(entry) = view.get(&name) {
            let seen = number(entry)?;
            check!(
                seen >= newest,
                "the watch went back in time: expected {newest} or later, saw {seen}"
            );
            newest = seen;
        }
        if newest == last {
            return Ok(());
        }
        view.step().await?;
    }
}

pub(crate) async fn a_watch_never_goes_back_in_time(scratch: &Scratch<'_>) -> Checked {
    const LAST: u64 = 200;
    let (watcher, writer) = scratch.two_clients().await?;
    writer.create_persistent(&key("/dir/k"), "0").await?;
    let mut one = View::open(&*watcher, Target::Key(key("/dir/k"))).await?;
    let mut all = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    let write = async {
        for value in 1..=LAST {
            writer
                .update(&key("/dir/k"), value.to_string().into(), Expect::Any)
                .await?;
        }
        Ok(())
    };
    futures::try_join!(write, rises_to(&mut one, LAST), rises_to(&mut all, LAST)).map(drop)
}

pub(crate) async fn nothing_is_missed_between_state_and_changes(scratch: &Scratch<'_>) -> Checked {
    const LAST: u64 = 100;
    let (watcher, writer) = scratch.two_clients().await?;
    writer.create_persistent(&key("/dir/k"), "0").await?;
    let write = async {
        for value in 1..=LAST {
            writer
                .update(&key("/dir/k"), value.to_string().into(), Expect::Any)
                .await?;
        }
        Checked::Ok(())
    };
    // Each starts somewhere among the writes; whatever it starts with, it must come to the last one.
    let watch = async {
        let mut views = Vec::new();
        for round in 0..20 {
            let target = match round % 2 {
                0 => Target::Key(key("/dir/k")),
                _ => Target::Children(key("/dir")),
            };
            views.push(View::open(&*watcher, target).await?);
        }
        for view in &mut views {
            rises_to(view, LAST).await?;
        }
        Ok(())
    };
    futures::try_join!(write, watch).map(drop)
}

/// What happens once beside the start of a watch.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Create,
    Update,
    Delete,
}

/// Starts a watch while one single write is under way, which begins after so many turns of other tasks. Nothing comes
/// after it that could make up for missing it.
async fn a_write_beside_a_start(
    clients: &(Client, Client),
    name: &Key,
    target: Target,
    (beside, turns): (Beside, u32),
) -> Checked {
    let (watcher, writer) = clients;
    if !matches!(beside, Beside::Create) {
        writer.create_persistent(name, "before").await?;
    }
    let write = async {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        Checked::Ok(match beside {
            Beside::Create => Some(writer.create_persistent(name, "after").await?),
            Beside::Update => Some(writer.update(name, "after".into(), Expect::Any).await?),
            Beside::Delete => {
                writer.delete(name, Expect::Any).await?;
                None
            }
        })
    };
    let (mut view, written) = futures::try_join!(View::open(&**watcher, target), write)?;
    let shown = |view: &View| view.get(name) == written.as_ref();
    view.until(&format!("the {beside:?} beside its start, {turns} turns later"), shown)
        .await
}

pub(crate) async fn a_write_beside_the_start_of_a_watch_is_never_missed(scratch: &Scratch<'_>) -> Checked {
    let clients = scratch.two_clients().await?;
    for turns in [0, 1, 2, 4, 10, 30, 100] {
        for beside in [Beside::Create, Beside::Update, Beside::Delete] {
            let dir = key(&format!("/dir{turns}-{beside:?}"));
            let (one, all) = (key(&format!("{dir}/one")), key(&format!("{dir}/all")));
            let target = Target::Key(one.clone());
            a_write_beside_a_start(&clients, &one, target, (beside, turns)).await?;
            a_write_beside_a_start(&clients, &all, Target::Children(dir), (beside, turns)).await?;
        }
    }
    Ok(())
}

pub(crate) async fn under_load_a_watch_ends_equal_to_the_store(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let third = scratch.client().await?;
    let lease = scratch.kept_lease(&third).await?;
    let mut view = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    let mut late = View::unread(&*watcher, Target::Children(key("/dir"))).await?;
    let churn = async {
        for round in 0..60 {
            let name = key(&format!("/dir/k{}", round % 5));
            let create = writer.create_persistent(&name, "0").await;
            match create {
                Err(error) if error.holder().is_some() => {
                    if round % 3 == 0 {
                        writer.delete(&name, Expect::Any).await?;
                    } else {
                        writer.update(&name, round.to_string().into(), Expect::Any).await?;
                    }
                }
                created => drop(created?),
            }
        }
        Checked::Ok(())
    };
    let others = async {
        for round in 0..30 {
            let entry = third.create_sequential(&key("/dir"), "0", lease).await?;
            if round % 3 != 0 {
                third.delete(&entry.key, entry.version.into()).await?;
            }
        }
        Ok(())
    };
    let ended = async {
        futures::try_join!(churn, others)?;
        writer.create_persistent(&key("/dir/zz-end"), "end").await?;
        Ok(())
    };
    let end = key("/dir/zz-end");
    let follow = view.until("the last entry", |view| view.get(&end).is_some());
    futures::try_join!(ended, follow)?;
    writer.get_latest(&end).await?;
    let stored = writer.children(&key("/dir")).await?;
    view.until("what is stored", |view| view.entries() == stored).await?;
    late.until("what is stored", |view| view.entries() == stored).await
}

pub(crate) async fn a_slow_reader_gets_the_latest_and_little_else(scratch: &Scratch<'_>) -> Checked {
    const LAST: u64 = 1000;
    let (watcher, writer) = scratch.two_clients().await?;
    writer.create_persistent(&key("/dir/k"), "0").await?;
    let mut slow = View::open(&*watcher, Target::Children(key("/dir"))).await?;
    let mut fast = View::open(&*watcher, Target::Key(key("/dir/k"))).await?;
    let write = async {
        // A few at a time: the last one is written alone, so that it is the last.
        for batch in (1..LAST).collect::<Vec<_>>().chunks(9) {
            try_join_all(batch.iter().map(|value| {
                let writer = writer.clone();
                let value = value.to_string();
                async move { writer.update(&key("/dir/k"), value.into(), Expect::Any).await }
            }))
            .await?;
        }
        writer
            .update(&key("/dir/k"), LAST.to_string().into(), Expect::Any)
            .await?;
        Ok::<(), crate::Failure>(())
    };
    let last = LAST.to_string();
    let is_last = |view: &View| view.get(&key("/dir/k")).is_some_and(|entry| entry.value == last);
    let follow = async {
        while !is_last(&fast) {
            fast.step().await?;
        }
        Ok(())
    };
    // The slow one, unread, holds up neither the writes nor the fast one.
    futures::try_join!(write, follow)?;
    // What the store still has under way to the slow one may take a moment.
    watcher.env().sleep(Duration::from_millis(200)).await;
    let before = slow.events();
    slow.until("the last value", is_last).await?;
    let read = slow.events() - before;
    check!(
        read <= 3,
        "expected {LAST} unread updates of one key merged to the latest, saw {read} events"
    );
    Ok(())
}

pub(crate) async fn an_unread_watch_holds_nobody_up(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let unread = View::unread(&*client, Target::Children(key("/dir"))).await?;
    let started = client.env().now();
    let value = vec![7; 64 * 1024];
    for round in 0..60 {
        // More than any buffer on the way holds.
        let name = key(&format!("/dir/k{}", round % 20));
        match client.create_persistent(&name, value.clone()).await {
            Err(error) if error.holder().is_some() => {
                client.update(&name, value.clone().into(), Expect::Any).await?;
            }
            created => drop(created?),
        }
        client.get(&name).await?;
    }
    let took = client.env().now() - started;
    check!(
        took < 2 * PATIENCE,
        "expected calls beside an unread watch to go on, saw {took:?} for 60 writes"
    );
    let mut unread = unread;
    unread.until("all children", |view| view.entries().len() == 20).await
}

pub(crate) async fn two_hundred_watches_on_one_client_all_tell(scratch: &Scratch<'_>) -> Checked {
    let (watcher, writer) = scratch.two_clients().await?;
    let names: Vec<_> = (0..200)
        .map(|index| key(&format!("/dir{}/k{index}", index % 10)))
        .collect();
    let mut views = Vec::new();
    for name in &names {
        views.push(View::open(&*watcher, Target::Key(name.clone())).await?);
    }
    for names in names.chunks(20) {
        try_join_all(names.iter().cloned().map(|name| {
            let writer = writer.clone();
            async move { writer.create_persistent(&name, name.name().to_owned()).await }
        }))
        .await?;
    }
    for (view, name) in views.iter_mut().zip(&names) {
        view.until("its own entry", |view| {
            view.get(name).is_some_and(|entry| entry.value == name.name())
        })
        .await?;
        check!(
            view.events() <= 3,
            "{name}: expected an event per change, saw {}",
            view.events()
        );
    }
    Ok(())
}
