//! Leases as the behaviours use them: kept alive, or watched on their way to the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coord_api::{Grant, Instant, Key, LeaseId, Task};

use crate::failure::{Checked, Failure};
use crate::scratch::Client;

/// What the behaviours ask for. Stores round: the granted ttl counts.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// What a behaviour may be late by itself, on a machine that does other things, too.
pub(crate) const ALLOWANCE: Duration = Duration::from_secs(1);
/// How often to look whether something has ended.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Grants a lease, and renews it until the task is dropped. `missed` tells when that was not done while it surely lived.
pub(crate) async fn kept(client: &Client, missed: Arc<AtomicBool>) -> Checked<(LeaseId, Task)> {
    let grant = client.grant(TTL).await?;
    let renewing = client.env().spawn({
        let client = client.clone();
        async move {
            let pace = grant.ttl / client.capabilities().renewals_per_ttl.max(1);
            let mut valid_until = grant.valid_until;
            loop {
                client.env().sleep(pace).await;
                let renewed = client.renew(grant.lease).await;
                if client.env().now() >= valid_until {
                    missed.store(true, Ordering::SeqCst);
                }
                // If it is lost, the behaviour finds out by what it does with it.
                let Ok(renewed) = renewed else { return };
                valid_until = renewed.valid_until;
            }
        }
    });
    Ok((grant.lease, renewing))
}

/// Renews a lease for which the renewal (or grant) before was sent at `before`; also tells when this one was sent.
///
/// If that was a whole ttl ago when the answer comes, whatever the answer says proves nothing.
pub(crate) async fn renewed(client: &Client, last: &Grant, before: Instant) -> Checked<(Grant, Instant)> {
    let sent = client.env().now();
    let renewed = client.renew(last.lease).await;
    let took = client.env().now() - before;
    if took >= last.ttl {
        return Err(Failure::inconclusive(format!(
            "{:?} passed from one renewal to the answer of the next",
            took
        )));
    }
    Ok((renewed?, sent))
}

/// A grant or renewal, and the moment when its answer was here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) grant: Grant,
    pub(crate) at: Instant,
}

/// Grants a lease that nobody renews.
pub(crate) async fn granted(client: &Client) -> Checked<Answered> {
    let grant = client.grant(TTL).await?;
    Ok(Answered {
        grant,
        at: client.env().now(),
    })
}

impl Answered {
    /// The latest moment by which the lease has ended if nobody renews it, the allowance included.
    pub(crate) fn latest_end(&self, owner: &Client) -> Instant {
        self.at + self.grant.ttl + owner.capabilities().expiry_slack + ALLOWANCE
    }
}

/// Waits until the entry of a lease that nobody renews is gone, and checks that it goes no earlier than `valid_until`
/// and no later than ttl and slack. `observer` looks; the clock is the owner's.
pub(crate) async fn ends_in_time(owner: &Client, observer: &Client, key: &Key, answered: &Answered) -> Checked {
    let env = owner.env();
    let valid_until = answered.grant.valid_until;
    let latest = answered.latest_end(owner);
    let mut seen_alive = false;
    loop {
        let asked = env.now();
        let found = observer.get_latest(key).await?;
        let told = env.now();
        match found {
            Some(_) => {
                check!(
                    asked <= latest,
                    "{key}: expected it gone {:?} after the answer, saw it after {:?}",
                    latest - answered.at,
                    asked - answered.at
                );
                seen_alive |= told < valid_until;
            }
            None => {
                check!(
                    told >= valid_until,
                    "{key}: expected it to live until {valid_until:?}, saw it gone {:?} earlier",
                    valid_until - told
                );
                if !seen_alive {
                    let slow = format!("{key}: no look came back before its lease ended");
                    return Err(Failure::inconclusive(slow));
                }
                return Ok(());
            }
        }
        // The last look before the promised end is as late as a timer can make it.
        let last_look = valid_until - Duration::from_millis(1);
        let next = told + LOOK_EVERY;
        let aligned = if told < last_look { next.min(last_look) } else { next };
        env.sleep_until(aligned).await;
    }
}

/// Waits until the entry is gone, as `observer` sees it; at most until `latest`.
pub(crate) async fn gone_by(observer: &Client, key: &Key, latest: Instant) -> Checked {
    let env = observer.env();
    loop {
        let asked = env.now();
        if observer.get_latest(key).await?.is_none() {
            return Ok(());
        }
        check!(
            asked <= latest,
            "{key}: expected it gone by {latest:?}, saw it at {asked:?}"
        );
        env.sleep(LOOK_EVERY).await;
    }
}

/// That the entry is gone now, as `observer` sees it.
pub(crate) async fn gone_now(observer: &Client, key: &Key) -> Checked {
    match observer.get_latest(key).await? {
        None => Ok(()),
        Some(entry) => Err(Failure::new(format!("{key}: expected it gone, saw {entry:?}"))),
    }
}
