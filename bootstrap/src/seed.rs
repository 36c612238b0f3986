use coord_api::{Bytes, Entry, Key};
use coord_cluster::{Address, ClusterId, ClusterView, Incarnation, MemberState, NodeId};
use serde::{Deserialize, Serialize};

use crate::record::parse_cluster;

/// One advertised contact of a cluster: the value of an entry below `<prefix>/seeds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seed {
    pub(crate) node: NodeId,
    /// A seed of another cluster than the recorded one is stale, whoever wrote it.
    pub(crate) cluster: ClusterId,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    node: String,
    incarnation: u64,
    cluster: String,
}

/// One write that brings the seeds nearer to the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Add(Key, Seed),
    Replace(Entry, Seed),
    Remove(Entry),
}

// === impl Seed ===

impl Seed {
    pub(crate) fn value(&self) -> Bytes {
        let wire = Wire {
            node: self.node.address.to_string(),
            incarnation: self.node.incarnation.0,
            cluster: self.cluster.to_string(),
        };
        // Strings and a number: this cannot fail.
        serde_json::to_vec(&wire).unwrap_or_default().into()
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Seed> {
        let wire: Wire = serde_json::from_slice(value).ok()?;
        Some(Seed {
            node: NodeId::new(wire.node.parse().ok()?, Incarnation(wire.incarnation)),
            cluster: parse_cluster(&wire.cluster)?,
        })
    }
}

/// The longest segment of a key.
const MAX_NAME: usize = 255;

/// The entry's name: the address, with what a key may not hold written as `@` and two hexadecimal digits.
pub(crate) fn name(address: &Address) -> String {
    let mut name = String::new();
    for byte in address.to_string().bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':');
        // A leading dot or tilde means something to the store.
        if plain || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            name += &format!("@{byte:02x}");
        }
    }
    if name.len() > MAX_NAME {
        // The value tells the address; the name only has to be its own.
        let key = NodeId::new(address.clone(), Incarnation(0)).key();
        name.truncate(MAX_NAME - 17);
        name += &format!("@{:016x}", key.0);
    }
    name
}

/// Whom to ask, out of what is advertised: members of this cluster, never oneself in whatever life.
pub(crate) fn contacts(entries: &[Entry], cluster: ClusterId, me: &Address) -> Vec<Address> {
    let seeds = entries.iter().filter_map(|entry| Seed::parse(&entry.value));
    let fit = seeds.filter(|seed| seed.cluster == cluster && seed.node.address != *me);
    fit.map(|seed| seed.node.address).collect()
}

/// The nodes to advertise: those that are and can be reached, then others that can be reached, then those that are;
/// never one that is not up, or in an older life than the one that is up.
fn wanted(view: &ClusterView, max: usize, actual: &[Entry]) -> Vec<NodeId> {
    let mut up: Vec<(&NodeId, bool)> = Vec::new();
    for member in view.members.iter().filter(|member| member.state == MemberState::Up) {
        // In their order, a later life of an address comes after the earlier one.
        up.retain(|(node, _)| node.address != member.node.address);
        up.push((&member.node, member.reachable));
    }
    let advertised: Vec<NodeId> = actual
        .iter()
        .filter_map(|entry| Seed::parse(&entry.value))
        .filter(|seed| seed.cluster == view.cluster)
        .map(|seed| seed.node)
        .collect();
    let is = |node: &NodeId| advertised.contains(node);
    let rank = |(node, reachable): &(&NodeId, bool)| match (*reachable, is(node)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    };
    up.sort_by_key(rank);
    let fit = up.iter().filter(|candidate| rank(candidate) < 3);
    fit.take(max).map(|(node, _)| (*node).clone()).collect()
}

/// What to write so that exactly the wanted nodes are advertised: first what is added, so that the list is never empty
/// in between.
pub(crate) fn plan(view: &ClusterView, max: usize, parent: &Key, actual: &[Entry]) -> Vec<Change> {
    let wanted = wanted(view, max, actual);
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for node in wanted {
        let Ok(key) = parent.child(name(&node.address)) else {
            continue;
        };
        let seed = Seed {
            node,
            cluster: view.cluster,
        };
        match actual.iter().find(|entry| entry.key == key) {
            None => changes.push(Change::Add(key.clone(), seed)),
            Some(entry) if Seed::parse(&entry.value).as_ref() == Some(&seed) => {}
            Some(entry) => changes.push(Change::Replace(entry.clone(), seed)),
        }
        kept.push(key);
    }
    let gone = actual.iter().filter(|entry| !kept.contains(&entry.key));
    changes.extend(gone.cloned().map(Change::Remove));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use coord_api::Version;

    #[test]
    fn nobody_asks_itself_or_whoever_is_in_another_cluster() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let entry = |value: Bytes, number: u64| Entry {
            key: Key::new(format!("/seeds/{number}")).unwrap(),
            value,
            version: Version::new(number, 1),
            created: number,
            lease: None,
        };
        let seed = |at: &str, life: u64, cluster: u64| {
            Seed {
                node: NodeId::new(address(at), Incarnation(life)),
                cluster: ClusterId(cluster),
            }
            .value()
        };
        let entries = [
            entry(seed("me:1", 1, 7), 1),
            entry(seed("me:1", 9, 7), 2),
            entry(seed("other:1", 1, 8), 3),
            entry("garbage".into(), 4),
            entry(seed("right:1", 1, 7), 5),
        ];
        assert_eq!(contacts(&entries, ClusterId(7), &address("me:1")), [address("right:1")]);
    }
}
