//! Leases that end, early or on purpose.

use super::*;

#[tokio::test(start_paused = true)]
async fn validity_counts_from_sending_although_request_and_answer_are_slow() {
    let (a, _) = pair();
    for slow in [Fault::Delay(SECOND), Fault::DelayAnswer(SECOND)] {
        a.faults().next(Operation::Grant, slow);
        let sent = a.env().now();
        let grant = a.grant(TTL).await.unwrap();
        assert!(a.env().now() >= sent + SECOND);
        assert_eq!(grant.valid_until, sent + TTL);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_although_its_client_is_cut() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    a.faults().cut();
    b.env().sleep(TTL).await;
    assert!(!exists(&b, "/e").await);
    a.faults().heal();
    assert!(a.renew(grant.lease).await.unwrap_err().is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ended_on_purpose_takes_its_entries_with_it_at_once() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    let entry = a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    let mut watch = b.watch(&Target::Key(key("/e"))).await.unwrap();
    assert_eq!(event(&mut watch).await, WatchEvent::State(vec![entry.clone()]));
    a.faults().end_lease(grant.lease);
    let (key, created) = (entry.key, entry.created);
    assert_eq!(event(&mut watch).await, WatchEvent::Delete { key, created });
    assert!(a.renew(grant.lease).await.unwrap_err().is_lease_lost());
}

/// A store whose acknowledgements prove three seconds less than they suggest.
async fn lagging(client: &MemClient) -> (coord_api::LeaseId, Instant) {
    let grant = client.grant(TTL).await.unwrap();
    client.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    assert_eq!(grant.valid_until, client.env().now() + TTL - 3 * SECOND);
    (grant.lease, grant.valid_until)
}

fn lagging_client() -> Arc<MemClient> {
    let options = StoreOptions {
        proof_lag: 3 * SECOND,
        ..StoreOptions::default()
    };
    MemStore::with_options(&Env::simulated(7), options).client()
}

#[tokio::test(start_paused = true)]
async fn with_a_lagging_proof_a_lease_still_lives_its_whole_ttl() {
    let client = lagging_client();
    let (_, valid_until) = lagging(&client).await;
    client.env().sleep_until(valid_until + 2 * SECOND).await;
    assert!(exists(&client, "/e").await);
    client.env().sleep(SECOND).await;
    assert!(!exists(&client, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ended_early_ends_at_valid_until_and_not_before() {
    let client = lagging_client();
    let (lease, valid_until) = lagging(&client).await;
    client.faults().end_lease_early(lease);
    client.env().sleep_until(valid_until - Duration::from_millis(1)).await;
    assert!(exists(&client, "/e").await);
    client.env().sleep_until(valid_until).await;
    assert!(!exists(&client, "/e").await);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_ends_early_was_acknowledged_and_lives_to_valid_until() {
    let client = lagging_client();
    let (lease, _) = lagging(&client).await;
    client.env().sleep(SECOND).await;
    client.faults().next(Operation::Renew, Fault::EndLeaseEarly);
    let renewed = client.renew(lease).await.unwrap();
    client
        .env()
        .sleep_until(renewed.valid_until - Duration::from_millis(1))
        .await;
    assert!(exists(&client, "/e").await);
    client.env().sleep_until(renewed.valid_until).await;
    assert!(client.renew(lease).await.unwrap_err().is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn a_paused_client_stands_still_while_its_lease_runs_out() {
    let (a, b) = pair();
    let grant = a.grant(TTL).await.unwrap();
    a.create_ephemeral(&key("/e"), "", grant.lease).await.unwrap();
    let renewing = a.env().spawn({
        let a = a.clone();
        async move {
            loop {
                a.env().sleep(TTL / 3).await;
                if let Err(error) = a.renew(grant.lease).await {
                    return error;
                }
            }
        }
    });
    b.env().sleep(5 * TTL).await;
    assert!(exists(&b, "/e").await);
    a.faults().pause();
    b.env().sleep(TTL).await;
    assert!(!exists(&b, "/e").await);
    assert!(!renewing.is_finished());
    a.faults().resume();
    assert!(renewing.join().await.unwrap().is_lease_lost());
}
