use coord_api::{CoordinatorExt, ErrorKind};

use crate::failure::{Checked, Failure};
use crate::lease::{ALLOWANCE, Answered, LOOK_EVERY, ends_in_time, gone_by, gone_now, granted, renewed};
use crate::scratch::{Scratch, key};

pub(crate) async fn an_unrenewed_lease_ends_in_time_and_not_before(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let answered = granted(&owner).await?;
    owner.create_ephemeral(&key("/k"), "v", answered.grant.lease).await?;
    ends_in_time(&owner, &observer, &key("/k"), &answered).await
}

pub(crate) async fn a_lease_ends_in_time_after_its_last_renewal_and_not_before(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let env = owner.env();
    let (mut sent, mut last) = (env.now(), granted(&owner).await?);
    owner.create_ephemeral(&key("/k"), "v", last.grant.lease).await?;
    // Twice: where the proof counts from the renewal before, the second one proves more than the grant did.
    for _ in 0..2 {
        env.sleep(last.grant.ttl / 4).await;
        let grant;
        (grant, sent) = renewed(&owner, &last.grant, sent).await?;
        last = Answered { grant, at: env.now() };
    }
    ends_in_time(&owner, &observer, &key("/k"), &last).await
}

pub(crate) async fn renewals_keep_a_lease_and_prove_it(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let env = owner.env();
    let mut sent = env.now();
    let first = owner.grant(crate::lease::TTL).await?;
    let entry = owner.create_ephemeral(&key("/k"), "v", first.lease).await?;
    let per_ttl = owner.capabilities().renewals_per_ttl.max(1);
    let mut last = first;
    for _ in 0..per_ttl * 5 / 2 {
        env.sleep(last.ttl / per_ttl).await;
        let before = sent;
        let grant;
        (grant, sent) = renewed(&owner, &last, before).await?;
        check_eq!(grant.lease, first.lease, "the renewed lease");
        check!(
            grant.valid_until >= last.valid_until,
            "expected a renewal never to shorten the proof {last:?}, saw {grant:?}"
        );
        let answered = env.now();
        if answered - before > grant.ttl * 3 / 4 {
            return Err(Failure::inconclusive("the pace could not be kept"));
        }
        check!(
            grant.valid_until > answered && grant.valid_until <= answered + grant.ttl,
            "expected proof after {answered:?} and for at most one ttl from a moment of sending, saw {grant:?}"
        );
        let seen = observer.get_latest(&entry.key).await?;
        if env.now() < grant.valid_until {
            check_eq!(seen, Some(entry.clone()), "the renewed lease's entry");
        }
        last = grant;
    }
    check!(
        last.valid_until >= first.valid_until + first.ttl,
        "expected renewals over two and a half ttls to move valid_until by at least one from {first:?}, saw {last:?}"
    );
    Ok(())
}

pub(crate) async fn renew_of_an_expired_lease_says_lost(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let answered = granted(&owner).await?;
    let lease = answered.grant.lease;
    owner.create_ephemeral(&key("/k"), "v", lease).await?;
    gone_by(&observer, &key("/k"), answered.latest_end(&owner) + ALLOWANCE).await?;
    for _ in 0..2 {
        refused!(
            owner.renew(lease).await,
            ErrorKind::LeaseLost(_),
            "renewing an expired lease"
        );
    }
    let created = owner.create_ephemeral(&key("/k"), "v", lease).await;
    refused!(created, ErrorKind::LeaseLost(_), "a create under an expired lease");
    owner.revoke(lease).await?;
    gone_now(&observer, &key("/k")).await
}

pub(crate) async fn renewing_one_lease_keeps_only_its_own_entries(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let renewed = scratch.kept_lease(&owner).await?;
    let staying = owner.create_ephemeral(&key("/staying"), "v", renewed).await?;
    let answered = granted(&owner).await?;
    owner
        .create_ephemeral(&key("/ending"), "v", answered.grant.lease)
        .await?;
    ends_in_time(&owner, &observer, &key("/ending"), &answered).await?;
    check_eq!(
        observer.get_latest(&staying.key).await?,
        Some(staying.clone()),
        "the entry of the renewed lease"
    );
    Ok(())
}

pub(crate) async fn traffic_of_a_client_does_not_renew_its_leases(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let answered = granted(&owner).await?;
    let lease = answered.grant.lease;
    let first = owner.create_ephemeral(&key("/k"), "v", lease).await?;
    let busy = async {
        // Reads and writes, also of the lease's own entry: none of them is a renewal.
        loop {
            let _ = owner.get(&first.key).await;
            let _ = owner.update(&first.key, "again".into(), coord_api::Expect::Any).await;
            owner.env().sleep(LOOK_EVERY * 5).await;
        }
    };
    tokio::select! {
        result = ends_in_time(&owner, &observer, &first.key, &answered) => result,
        () = busy => Ok(()),
    }
}

pub(crate) async fn an_updated_entry_still_ends_with_its_lease(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let answered = granted(&owner).await?;
    let entry = owner.create_ephemeral(&key("/k"), "v", answered.grant.lease).await?;
    owner.update(&entry.key, "w".into(), entry.version.into()).await?;
    // Another client's write does not take it over either.
    observer.update(&entry.key, "x".into(), coord_api::Expect::Any).await?;
    ends_in_time(&owner, &observer, &entry.key, &answered).await
}

pub(crate) async fn a_client_that_is_dropped_renews_nothing_further(scratch: &Scratch<'_>) -> Checked {
    let observer = scratch.client().await?;
    let owner = scratch.unowned_client().await?;
    let answered = granted(&owner).await?;
    owner.create_ephemeral(&key("/k"), "v", answered.grant.lease).await?;
    let latest = observer.env().now() + (answered.latest_end(&owner) - owner.env().now());
    drop(owner);
    gone_by(&observer, &key("/k"), latest).await
}

pub(crate) async fn a_key_is_free_again_when_its_lease_has_ended(scratch: &Scratch<'_>) -> Checked {
    let (first, second) = scratch.two_clients().await?;
    let answered = granted(&first).await?;
    let old = first
        .create_ephemeral(&key("/k"), "first", answered.grant.lease)
        .await?;
    gone_by(&second, &key("/k"), answered.latest_end(&first) + ALLOWANCE).await?;
    let lease = scratch.kept_lease(&second).await?;
    let new = second.create_ephemeral(&key("/k"), "second", lease).await?;
    check!(
        new.created > old.created,
        "expected a token above the old {}, saw {}",
        old.created,
        new.created
    );
    Ok(())
}
