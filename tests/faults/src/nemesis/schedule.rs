use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::Fault;
use super::fault::Server;
use crate::client::Store;

/// One fault of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How long nothing goes wrong before it.
    pub after: Duration,
    /// What goes wrong.
    pub fault: Fault,
    /// For how long.
    pub hold: Duration,
    /// Picks the one to whom it happens.
    pub pick: u64,
    /// Whether it waits for the moment when a leader's lease was just renewed.
    pub renewed: bool,
}

/// So many seeds in a row get all faults between them, if their schedules are long enough.
const DECK: u64 = 4;
/// Load before the first fault.
const WARM: Duration = Duration::from_secs(3);

/// Below the ttl of the clients' leases, 3 s, also when the machine is slow.
const LEADER_PAUSE: Duration = Duration::from_millis(2000);

/// Whether the store itself would end leases early after it. An etcd before 3.4.31 whose leader stood still for longer than
/// a ttl revokes leases that were renewed elsewhere, up to its request timeout of 7 s later, in waves that need not touch
/// a lease of the bare client: then no evidence tells whose fault it is. `docs/drivers/etcd.md` has the measurements.
fn may_revoke_late(store: Store, fault: Fault) -> bool {
    store == Store::Etcd && matches!(fault, Fault::Pause(Server::Leader | Server::Majority))
}

/// The faults of a schedule of this length: the same for the same seed.
pub fn schedule(seed: u64, store: Store, length: Duration) -> Vec<Step> {
    let mut deck = Fault::all(store);
    deck.shuffle(&mut StdRng::seed_from_u64(seed / DECK));
    let share = deck.len() / usize::try_from(DECK).unwrap_or(1);
    let start = usize::try_from(seed % DECK).unwrap_or_default() * share;
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = vec![];
    let mut at = Duration::ZERO;
    for number in 0.. {
        let after = match number {
            0 => WARM,
            // Some faults come before everything works again.
            _ => Duration::from_millis(random.random_range(300..2500)),
        };
        // Shorter than a lease, about as long, longer.
        let hold = Duration::from_millis(match random.random_range(0..3) {
            0 => random.random_range(300..1200),
            1 => random.random_range(1200..3000),
            _ => random.random_range(3200..5500),
        });
        let fault = deck[(start + number) % deck.len()];
        let hold = if may_revoke_late(store, fault) {
            hold.min(LEADER_PAUSE)
        } else {
            hold
        };
        at += after + hold;
        if at > length && number > 0 {
            break;
        }
        steps.push(Step {
            after,
            fault,
            hold,
            pick: random.random_range(0..u64::MAX),
            renewed: random.random_bool(0.5),
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_schedule() {
        let minute = Duration::from_secs(60);
        assert_eq!(schedule(7, Store::Etcd, minute), schedule(7, Store::Etcd, minute));
        assert_ne!(schedule(7, Store::Etcd, minute), schedule(8, Store::Etcd, minute));
    }

    #[test]
    fn a_leader_of_etcd_is_paused_for_less_than_a_ttl() {
        let minute = Duration::from_secs(60);
        let steps: Vec<Step> = (0..200).flat_map(|seed| schedule(seed, Store::Etcd, minute)).collect();
        let paused: Vec<&Step> = steps
            .iter()
            .filter(|step| may_revoke_late(Store::Etcd, step.fault))
            .collect();
        assert!(!paused.is_empty() && paused.iter().all(|step| step.hold <= LEADER_PAUSE));
        assert!(steps.iter().any(|step| step.hold > LEADER_PAUSE));
    }

    #[test]
    fn twenty_minutes_hold_every_fault() {
        for store in Store::ALL {
            let minute = Duration::from_secs(60);
            let faults = (1..21)
                .flat_map(|seed| schedule(seed, store, minute))
                .map(|step| step.fault);
            let faults: BTreeSet<Fault> = faults.collect();
            assert_eq!(faults, Fault::all(store).into_iter().collect());
        }
    }
}
