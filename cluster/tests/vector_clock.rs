//! Properties of the vector clock.

use std::cmp::Ordering;

use coord_cluster::VectorClock;
use proptest::prelude::*;

/// A few replicas that update and exchange at random: the clocks they end up with are related in every way.
fn histories() -> impl Strategy<Value = Vec<VectorClock<u8>>> {
    proptest::collection::vec((0u8..5, 0u8..5, any::<bool>()), 0..40).prop_map(|steps| {
        let mut replicas = vec![VectorClock::new(); 5];
        for (a, b, exchange) in steps {
            if exchange {
                let other = replicas[usize::from(b)].clone();
                replicas[usize::from(a)].merge(&other);
            } else {
                replicas[usize::from(a)].increment(a);
            }
        }
        replicas
    })
}

fn merged(a: &VectorClock<u8>, b: &VectorClock<u8>) -> VectorClock<u8> {
    let mut merged = a.clone();
    merged.merge(b);
    merged
}

proptest! {
    #[test]
    fn merge_is_commutative_associative_idempotent(clocks in histories()) {
        let (a, b, c) = (&clocks[0], &clocks[1], &clocks[2]);
        prop_assert_eq!(merged(a, b), merged(b, a));
        prop_assert_eq!(merged(&merged(a, b), c), merged(a, &merged(b, c)));
        prop_assert_eq!(merged(a, a), a.clone());
    }

    #[test]
    fn the_order_is_a_partial_order(clocks in histories()) {
        for a in &clocks {
            prop_assert_eq!(a.causal_cmp(a), Some(Ordering::Equal));
            for b in &clocks {
                prop_assert_eq!(a.causal_cmp(b), b.causal_cmp(a).map(Ordering::reverse));
                for c in &clocks {
                    if a.causal_cmp(b).is_some_and(Ordering::is_le) && b.causal_cmp(c).is_some_and(Ordering::is_le) {
                        prop_assert!(a.causal_cmp(c).is_some_and(Ordering::is_le));
                    }
                }
            }
        }
    }

    #[test]
    fn an_update_is_after_what_it_saw_and_concurrent_with_what_it_did_not(clocks in histories(), key in 0u8..5) {
        let before = &clocks[usize::from(key)];
        let after = before.clone().incremented(key);
        prop_assert_eq!(after.causal_cmp(before), Some(Ordering::Greater));
        let elsewhere = before.clone().incremented(9);
        prop_assert_eq!(after.causal_cmp(&elsewhere), None);
    }

    #[test]
    fn merging_is_the_least_clock_that_has_seen_both(clocks in histories()) {
        let both = merged(&clocks[0], &clocks[1]);
        prop_assert!(both.causal_cmp(&clocks[0]).is_some_and(Ordering::is_ge));
        prop_assert!(both.causal_cmp(&clocks[1]).is_some_and(Ordering::is_ge));
        prop_assert!(both.iter().all(|(key, counter)| counter == clocks[0].get(key).max(clocks[1].get(key))));
    }

    #[test]
    fn pruned_merge_does_not_depend_on_order(clocks in histories(), limit in 1usize..5) {
        let prune = |mut clock: VectorClock<u8>| { clock.prune(limit); clock };
        let (a, b, c) = (&clocks[0], &clocks[1], &clocks[2]);
        let left = prune(merged(&prune(merged(a, b)), c));
        let right = prune(merged(a, &prune(merged(b, c))));
        prop_assert_eq!(&left, &right);
        prop_assert!(left.len() <= limit);
    }

    #[test]
    fn pruning_keeps_the_latest_writer(clocks in histories(), limit in 1usize..5, key in 0u8..5) {
        let mut clock = clocks[0].clone().incremented(key);
        let counter = clock.get(&key);
        clock.prune(limit);
        prop_assert_eq!(clock.get(&key), counter);
    }
}

#[test]
fn forgetting_a_key_leaves_the_others() {
    let mut clock = VectorClock::new().incremented("a").incremented("b");
    clock.forget(&"a");
    assert_eq!(
        (clock.get(&"a"), clock.get(&"b"), clock.len(), clock.is_empty()),
        (0, 2, 1, false)
    );
}
