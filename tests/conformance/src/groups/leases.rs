use std::time::Duration;

use coord_api::{CoordinatorExt, ErrorKind, LeaseId, margin};

use crate::failure::Checked;
use crate::lease::{TTL, gone_now, granted};
use crate::scratch::{Scratch, key};

pub(crate) async fn a_grant_tells_how_long_the_lease_surely_lives(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let env = client.env();
    for _ in 0..3 {
        let called = env.now();
        let grant = client.grant(TTL).await?;
        let answered = env.now();
        check!(!grant.ttl.is_zero(), "expected a granted ttl above zero, saw {grant:?}");
        check!(
            grant.valid_until > answered,
            "expected a lease that still lives when its grant is answered at {answered:?}, saw {grant:?}"
        );
        check!(
            grant.valid_until <= answered + grant.ttl,
            "expected valid_until at most one ttl after a moment of sending between {called:?} and {answered:?}, \
             saw {grant:?}"
        );
        client.revoke(grant.lease).await?;
    }
    Ok(())
}

pub(crate) async fn the_longest_ttl_is_granted(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let grant = client.grant(client.capabilities().max_ttl).await?;
    check!(!grant.ttl.is_zero(), "expected a granted ttl above zero, saw {grant:?}");
    client.create_ephemeral(&key("/k"), "v", grant.lease).await?;
    client.revoke(grant.lease).await?;
    Ok(())
}

pub(crate) async fn leases_of_all_clients_have_different_names(scratch: &Scratch<'_>) -> Checked {
    let (one, two) = scratch.two_clients().await?;
    let mut seen = std::collections::BTreeSet::new();
    for client in [&one, &two, &one, &two] {
        let lease = client.grant(TTL).await?.lease;
        check!(seen.insert(lease), "expected a fresh lease, saw {lease} again");
    }
    Ok(())
}

pub(crate) async fn revoke_removes_all_entries_of_the_lease_at_once(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    for round in 0..5 {
        let lease = owner.grant(TTL).await?.lease;
        let fixed = key(&format!("/fixed-{round}"));
        owner.create_ephemeral(&fixed, "v", lease).await?;
        let sequential = owner.create_sequential(&key("/dir"), "v", lease).await?.key;
        owner.revoke(lease).await?;
        gone_now(&observer, &fixed).await?;
        gone_now(&observer, &sequential).await?;
        check_eq!(
            owner.get(&fixed).await?,
            None,
            "{fixed} as its owner sees it after the revoke"
        );
    }
    Ok(())
}

pub(crate) async fn revoke_of_an_ended_lease_is_no_error(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = client.grant(TTL).await?.lease;
    for _ in 0..3 {
        client.revoke(lease).await?;
    }
    Ok(())
}

pub(crate) async fn revoke_leaves_other_leases_and_persistent_entries(scratch: &Scratch<'_>) -> Checked {
    let (owner, other) = scratch.two_clients().await?;
    let ending = owner.grant(TTL).await?.lease;
    let staying = scratch.kept_lease(&owner).await?;
    let foreign = scratch.kept_lease(&other).await?;
    owner.create_ephemeral(&key("/ending"), "v", ending).await?;
    let same_owner = owner.create_ephemeral(&key("/same-owner"), "v", staying).await?;
    let other_owner = other.create_ephemeral(&key("/other-owner"), "v", foreign).await?;
    let persistent = owner.create_persistent(&key("/persistent"), "v").await?;
    owner.revoke(ending).await?;
    gone_now(&other, &key("/ending")).await?;
    for entry in [same_owner, other_owner, persistent] {
        check_eq!(
            other.get_latest(&entry.key).await?,
            Some(entry.clone()),
            "{}",
            entry.key
        );
    }
    Ok(())
}

pub(crate) async fn renew_of_a_revoked_lease_says_lost(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let lease = client.grant(TTL).await?.lease;
    client.revoke(lease).await?;
    for _ in 0..2 {
        let error = refused!(
            client.renew(lease).await,
            ErrorKind::LeaseLost(_),
            "renewing a revoked lease"
        );
        check_eq!(*error.kind(), ErrorKind::LeaseLost(lease), "the lease that is named");
    }
    Ok(())
}

pub(crate) async fn create_under_an_ended_lease_says_lost(scratch: &Scratch<'_>) -> Checked {
    let (client, observer) = scratch.two_clients().await?;
    let lease = client.grant(TTL).await?.lease;
    client.revoke(lease).await?;
    let fixed = client.create_ephemeral(&key("/k"), "v", lease).await;
    refused!(fixed, ErrorKind::LeaseLost(_), "a create under a revoked lease");
    let sequential = client.create_sequential(&key("/dir"), "v", lease).await;
    refused!(
        sequential,
        ErrorKind::LeaseLost(_),
        "a sequential create under a revoked lease"
    );
    gone_now(&observer, &key("/k")).await?;
    check_eq!(
        observer.children(&key("/dir")).await?,
        [],
        "the entries under a lease that had ended"
    );
    Ok(())
}

pub(crate) async fn a_foreign_lease_is_refused_everywhere(scratch: &Scratch<'_>) -> Checked {
    let (owner, stranger) = scratch.two_clients().await?;
    let lease = scratch.kept_lease(&owner).await?;
    let mine = owner.create_ephemeral(&key("/mine"), "v", lease).await?;
    let created = stranger.create_ephemeral(&key("/k"), "v", lease).await;
    refused!(
        created,
        ErrorKind::ForeignLease(_),
        "a create under another client's lease"
    );
    let created = stranger.create_sequential(&key("/dir"), "v", lease).await;
    refused!(
        created,
        ErrorKind::ForeignLease(_),
        "a sequential create under another client's lease"
    );
    refused!(
        stranger.renew(lease).await,
        ErrorKind::ForeignLease(_),
        "renewing another client's lease"
    );
    refused!(
        stranger.revoke(lease).await,
        ErrorKind::ForeignLease(_),
        "revoking another client's lease"
    );
    gone_now(&owner, &key("/k")).await?;
    check_eq!(
        owner.get_latest(&mine.key).await?,
        Some(mine.clone()),
        "the owner's entry"
    );
    Ok(())
}

pub(crate) async fn an_invented_lease_is_foreign(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    // Not every bit: a store may count its leases in signed numbers.
    let invented = LeaseId(client.env().random_u64() >> 2 | 1);
    let created = client.create_ephemeral(&key("/k"), "v", invented).await;
    refused!(created, ErrorKind::ForeignLease(_), "a create under an invented lease");
    refused!(
        client.renew(invented).await,
        ErrorKind::ForeignLease(_),
        "renewing an invented lease"
    );
    refused!(
        client.revoke(invented).await,
        ErrorKind::ForeignLease(_),
        "revoking an invented lease"
    );
    Ok(())
}

pub(crate) async fn many_leases_live_side_by_side(scratch: &Scratch<'_>) -> Checked {
    let (owner, observer) = scratch.two_clients().await?;
    let mut leases = Vec::new();
    for index in 0..10 {
        let lease = scratch.kept_lease(&owner).await?;
        let entry = owner.create_ephemeral(&key(&format!("/k{index}")), "v", lease).await?;
        check_eq!(entry.lease, Some(lease), "the lease of {}", entry.key);
        leases.push((lease, entry));
    }
    while let Some((ending, entry)) = leases.pop() {
        owner.revoke(ending).await?;
        gone_now(&observer, &entry.key).await?;
        for (_, entry) in &leases {
            check_eq!(
                observer.get_latest(&entry.key).await?,
                Some(entry.clone()),
                "{}",
                entry.key
            );
        }
    }
    Ok(())
}

pub(crate) async fn the_margin_leaves_something_of_the_granted_ttl(scratch: &Scratch<'_>) -> Checked {
    let client = scratch.client().await?;
    let answered = granted(&client).await?;
    let grant = answered.grant;
    check!(
        grant.valid_until - margin(grant.ttl) > answered.at + Duration::from_millis(100),
        "expected time to work in before the margin of {:?}, saw {grant:?} answered at {:?}",
        margin(grant.ttl),
        answered.at
    );
    Ok(())
}
