use std::cmp::Ordering;

use coord_api::{Key, Nonce};

/// Where ZooKeeper's per-parent counter ends: it sticks there instead of wrapping.
const LAST_SEQUENCE: u64 = 2_147_483_647;
const DIGITS: usize = 10;

/// The driver's own znodes, below the root; users cannot name them.
pub(crate) const OWN: &str = "/.coord";

/// The name of a sequential entry: `~<nonce>-<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequentialName {
    pub(crate) nonce: Nonce,
    pub(crate) sequence: u64,
}

/// The path to give to a sequential create; the server adds the digits.
pub(crate) fn sequential_path(parent: &Key, nonce: Nonce) -> String {
    format!("{}/{}", dir(parent), sequential_prefix(nonce))
}

pub(crate) fn sequential_prefix(nonce: Nonce) -> String {
    format!("~{nonce}-")
}

/// The text to which `/segment` can be added: empty for the root.
pub(crate) fn dir(key: &Key) -> &str {
    if key.is_root() { "" } else { key.as_str() }
}

/// The children of `parent` that are keys: not the driver's own nodes, ZooKeeper's, or what others named outside the
/// rules.
pub(crate) fn visible_children(parent: &Key, at_server_root: bool, names: Vec<String>) -> Vec<Key> {
    let mut keys: Vec<Key> = names
        .into_iter()
        .filter(|name| !(parent.is_root() && at_server_root && name == "zookeeper"))
        .filter_map(|name| parent.child(name).ok())
        .collect();
    keys.sort_unstable();
    keys
}

impl SequentialName {
    pub(crate) fn parse(name: &str) -> Option<SequentialName> {
        let (nonce, sequence) = name.strip_prefix('~')?.split_once('-')?;
        let hex = nonce.len() == 32 && nonce.bytes().all(|digit| digit.is_ascii_hexdigit());
        // Larger servers than ours may hand out 19 digits one day.
        let decimal = sequence.len() >= DIGITS && sequence.bytes().all(|digit| digit.is_ascii_digit());
        if !hex || !decimal {
            return None;
        }
        Some(SequentialName {
            nonce: Nonce(u128::from_str_radix(nonce, 16).ok()?),
            sequence: sequence.parse().ok()?,
        })
    }
}

/// Whether the sequence alone tells the order: not once the counter of this parent may have come to its end.
pub(crate) fn ordered_by_sequence<'a>(names: impl IntoIterator<Item = &'a SequentialName>) -> bool {
    names.into_iter().all(|name| name.sequence < LAST_SEQUENCE)
}

/// The order of two siblings, given their czxids where the sequence does not tell.
pub(crate) fn order(a: (&SequentialName, Option<u64>), b: (&SequentialName, Option<u64>)) -> Ordering {
    match (a.1, b.1) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.0.sequence.cmp(&b.0.sequence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(sequence: u64) -> SequentialName {
        SequentialName {
            nonce: Nonce(1),
            sequence,
        }
    }

    #[test]
    fn names_of_our_making_are_read_back_and_others_are_not() {
        let key = Key::new("/a").unwrap();
        let path = sequential_path(&key, Nonce(0xfe));
        assert_eq!(path, format!("/a/~{:032x}-", 0xfe));
        let full = format!("{}{:010}", sequential_prefix(Nonce(0xfe)), 42);
        assert_eq!(
            SequentialName::parse(&full),
            Some(SequentialName {
                nonce: Nonce(0xfe),
                sequence: 42
            })
        );
        for other in [
            "",
            "~",
            "~x-0000000001",
            "n-0000000001",
            &full[1..],
            &full[..full.len() - 1],
        ] {
            assert_eq!(SequentialName::parse(other), None, "{other}");
        }
        assert_eq!(sequential_path(&Key::root(), Nonce(1)).matches('/').count(), 1);
    }

    #[test]
    fn the_sequence_orders_only_below_its_end_and_the_czxid_after_it() {
        let (early, late, stuck) = (name(9), name(10), name(LAST_SEQUENCE));
        assert!(ordered_by_sequence([&early, &late]));
        assert_eq!(order((&early, None), (&late, None)), Ordering::Less);
        assert!(!ordered_by_sequence([&early, &stuck]));
        // Two that got the same last number, and one that came before: only the czxid tells.
        assert_eq!(order((&stuck, Some(8)), (&stuck, Some(9))), Ordering::Less);
        assert_eq!(order((&stuck, Some(8)), (&late, Some(7))), Ordering::Greater);
    }

    #[test]
    fn foreign_and_own_nodes_are_not_children() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let root = visible_children(
            &Key::root(),
            true,
            names(&["b", ".coord", "zookeeper", "not a key", "a"]),
        );
        assert_eq!(root, [Key::new("/a").unwrap(), Key::new("/b").unwrap()]);
        let below = visible_children(&Key::root(), false, names(&["zookeeper"]));
        assert_eq!(below, [Key::new("/zookeeper").unwrap()]);
    }
}
