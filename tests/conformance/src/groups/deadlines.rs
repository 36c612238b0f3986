use std::time::Duration;

use coord_api::{Class, Coordinator, CoordinatorExt, Create, CreateMode, Expect, Target};

use crate::failure::Checked;
use crate::lease::{ALLOWANCE, TTL, gone_now};
use crate::scratch::{Scratch, key};

/// From "no chance" to "perhaps".
const TIGHT: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(50),
    Duration::from_micros(700),
    Duration::from_millis(3),
];

/// Runs a call that may fail for want of time only, and must end promptly. Gives whether it succeeded.
async fn ends_promptly<T>(
    client: &dyn Coordinator,
    deadline: Duration,
    call: impl Future<Output = coord_api::Result<T>>,
) -> Checked<Option<T>> {
    let env = client.env();
    let started = env.now();
    let Some(result) = env.timeout_at(started + deadline + ALLOWANCE, call).await else {
        return Err(crate::Failure::new(format!(
            "expected a call with a deadline of {deadline:?} to end by it, saw it run on {ALLOWANCE:?} later"
        )));
    };
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) => {
            check!(error.is_transient(), "expected only time to be short, saw {error:?}");
            let fits = match error.class() {
                Class::Definite => false,
                Class::NotSent => true,
                Class::Unknown => !error.operation().is_read(),
            };
            check!(
                fits,
                "expected class NotSent (or, of a write, Unknown) for want of time, saw {error:?}"
            );
            Ok(None)
        }
    }
}

pub(crate) async fn reads_end_by_their_deadline_and_are_never_unknown(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = scratch.kept_lease(&client).await?;
    let entry = client.create_sequential(&key("/dir"), "v", lease).await?;
    for deadline in TIGHT {
        let tight = client.within(deadline);
        let target = Target::Children(key("/dir"));
        for _ in 0..3 {
            ends_promptly(&*client, deadline, tight.get(&entry.key)).await?;
            ends_promptly(&*client, deadline, tight.get_latest(&entry.key)).await?;
            ends_promptly(&*client, deadline, tight.children(&key("/dir"))).await?;
            ends_promptly(&*client, deadline, tight.standing(&entry)).await?;
            ends_promptly(&*client, deadline, tight.watch(&target)).await?;
        }
    }
    // None of that has harmed the client.
    check_eq!(
        client.get(&entry.key).await?,
        Some(entry),
        "the entry, without a tight deadline"
    );
    Ok(())
}

pub(crate) async fn writes_end_by_their_deadline_and_can_be_settled(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&client).await?;
    let counter = client.create_persistent(&key("/counter"), "0").await?;
    for (index, deadline) in TIGHT.into_iter().enumerate() {
        let tight = client.within(deadline);
        for (kind, mode) in [("e", CreateMode::Ephemeral(lease)), ("p", CreateMode::Persistent)] {
            let again = Create::new(client.env(), key(&format!("/again-{kind}{index}")), "v", mode);
            if ends_promptly(&*client, deadline, tight.create(&again)).await?.is_none() {
                let entry = client.create(&again).await?;
                check_eq!(
                    observer.get_latest(&again.key).await?,
                    Some(entry),
                    "the create sent again"
                );
            }
            let never = Create::new(client.env(), key(&format!("/never-{kind}{index}")), "v", mode);
            if ends_promptly(&*client, deadline, tight.create(&never)).await?.is_none() {
                client.abandon(&never).await?;
                gone_now(&observer, &never.key).await?;
            }
        }
        ends_promptly(&*client, deadline, tight.update(&counter.key, "1".into(), Expect::Any)).await?;
        ends_promptly(&*client, deadline, tight.renew(lease)).await?;
        if let Some(grant) = ends_promptly(&*client, deadline, tight.grant(TTL)).await? {
            client.revoke(grant.lease).await?;
        }
    }
    observer.env().sleep(Duration::from_millis(50)).await;
    for index in 0..TIGHT.len() {
        for kind in ["e", "p"] {
            let never = key(&format!("/never-{kind}{index}"));
            if let Some(entry) = observer.get_latest(&never).await? {
                // It had succeeded in time; then it is there, whole.
                check_eq!(entry.value, "v", "the value of {never}");
            }
        }
    }
    Ok(())
}

pub(crate) async fn within_only_tightens(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let longer = client.within(client.capabilities().call_deadline * 100);
    let entry = longer.create_persistent(&key("/k"), "v").await?;
    let tight = client.within(Duration::ZERO);
    let loosened = tight.within(Duration::from_secs(3600));
    let whole = client.capabilities().call_deadline;
    let told = |view: &std::sync::Arc<dyn Coordinator>| view.capabilities().call_deadline;
    check_eq!(
        told(&longer),
        whole,
        "the deadline of a view that asked for a longer one"
    );
    check_eq!(told(&tight), Duration::ZERO, "the deadline of a tighter view");
    check_eq!(
        told(&loosened),
        Duration::ZERO,
        "the deadline of a tighter view's longer one"
    );
    // Both may or may not make it; neither may be refused or hang.
    ends_promptly(&*client, Duration::ZERO, tight.get(&entry.key)).await?;
    ends_promptly(&*client, Duration::ZERO, loosened.get(&entry.key)).await?;
    check_eq!(
        client.get(&entry.key).await?,
        Some(entry.clone()),
        "the entry, seen by the client itself"
    );
    check_eq!(
        longer.get(&entry.key).await?,
        Some(entry),
        "the entry, seen with a longer deadline"
    );
    Ok(())
}

pub(crate) async fn a_dropped_read_is_free(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let entry = client.create_persistent(&key("/dir/k"), "v").await?;
    let env = client.env();
    for cut in crate::cut::Cut::POINTS {
        for _ in 0..5 {
            let dir = key("/dir");
            let target = Target::Children(dir.clone());
            cut.apply(env, client.get(&entry.key)).await;
            cut.apply(env, client.get_latest(&entry.key)).await;
            cut.apply(env, client.children(&dir)).await;
            cut.apply(env, client.watch(&target)).await;
        }
    }
    check_eq!(client.get(&entry.key).await?, Some(entry), "the entry afterwards");
    Ok(())
}

pub(crate) async fn the_clock_and_the_randomness_of_a_client_work(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let pause = Duration::from_millis(30);
    for client in [&one, &two] {
        let env = client.env();
        let started = env.now();
        env.sleep(pause).await;
        let slept = env.now() - started;
        check!(
            slept >= pause,
            "expected the clock to advance by {pause:?}, saw {slept:?}"
        );
        check!(
            slept < pause + ALLOWANCE,
            "expected a sleep of {pause:?} to end, saw {slept:?}"
        );
    }
    let mut nonces: Vec<_> = (0..10).flat_map(|_| [one.env().nonce(), two.env().nonce()]).collect();
    nonces.sort_unstable();
    nonces.dedup();
    check_eq!(nonces.len(), 20, "the number of different nonces");
    Ok(())
}
