use std::collections::hash_map;

use bytes::Bytes;
use coord_api::{
    Create, CreateMode, Entry, Error, ErrorKind, Expect, Instant, InvalidKey, Key, LeaseId, Nonce, Operation, Result,
    Standing,
};

use super::{ClientId, Node, State};

/// Entries: what each request does to them, all or nothing.
impl State {
    pub(crate) fn create(&mut self, client: ClientId, create: &Create) -> Result<Entry> {
        let refuse = |kind| Err(Error::definite(Operation::Create, Some(&create.key), kind));
        if self.fences.holds(create.nonce) {
            return refuse(ErrorKind::Abandoned);
        }
        if let Some(lease) = create.mode.lease() {
            self.leases.check(Operation::Create, Some(&create.key), client, lease)?;
        }
        let key = entry_key(Operation::Create, create)?;
        if let Some(node) = self.nodes.get(&key) {
            let entry = node.entry(&key);
            return if node.nonce == Some(create.nonce) {
                Ok(entry)
            } else {
                refuse(ErrorKind::AlreadyExists(Box::new(entry)))
            };
        }
        let mut missing = Vec::new();
        for ancestor in key.ancestors() {
            match self.nodes.get(&ancestor) {
                None => missing.push(ancestor),
                Some(node) if node.lease.is_some() => return refuse(ErrorKind::EphemeralParent(ancestor)),
                Some(_) => break,
            }
        }
        for parent in missing.into_iter().rev() {
            self.insert_node(&parent, Bytes::new(), None, None);
        }
        Ok(self.insert_node(&key, create.value.clone(), create.mode.lease(), Some(create.nonce)))
    }

    pub(crate) fn abandon(&mut self, create: &Create, now: Instant) -> Result<()> {
        let key = entry_key(Operation::Abandon, create)?;
        let made_by_it = self
            .nodes
            .get(&key)
            .is_some_and(|node| node.nonce == Some(create.nonce));
        if made_by_it {
            if self.has_children(&key) {
                return Err(Error::definite(Operation::Abandon, Some(&key), ErrorKind::NotEmpty));
            }
            self.remove_node(&key);
        }
        self.fences.add(create.nonce, now, self.arrivals.last_at());
        Ok(())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        self.nodes.get(key).map(|node| node.entry(key))
    }

    pub(crate) fn children(&self, key: &Key) -> Vec<Entry> {
        let Some(children) = self.children.get(key) else {
            return Vec::new();
        };
        children.sorted().into_iter().filter_map(|key| self.get(key)).collect()
    }

    pub(crate) fn update(&mut self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.check_version(Operation::Update, key, expected)?;
        self.writes += 1;
        let Some(node) = self.nodes.get_mut(key) else {
            return Err(not_found(Operation::Update, key));
        };
        node.value = value;
        node.written = self.writes;
        let entry = node.entry(key);
        self.watchers.put(&entry);
        Ok(entry)
    }

    pub(crate) fn delete(&mut self, key: &Key, expected: Expect) -> Result<()> {
        self.check_version(Operation::Delete, key, expected)?;
        if self.has_children(key) {
            return Err(Error::definite(Operation::Delete, Some(key), ErrorKind::NotEmpty));
        }
        self.remove_node(key);
        Ok(())
    }

    pub(crate) fn standing(&self, key: &Key, created: u64) -> Standing {
        let own = self.get(key).filter(|entry| entry.created == created);
        let siblings = key.parent().and_then(|parent| self.children.get(&parent));
        let predecessor = own.as_ref().and(siblings).and_then(|siblings| {
            let (_, before) = siblings.sequential.range(..created).next_back()?;
            Some(before.clone())
        });
        Standing { own, predecessor }
    }

    pub(super) fn remove_node(&mut self, key: &Key) {
        let Some(node) = self.nodes.remove(key) else { return };
        self.writes += 1;
        if let Some(parent) = key.parent()
            && let hash_map::Entry::Occupied(mut siblings) = self.children.entry(parent)
        {
            siblings.get_mut().remove(key, node.created);
            if siblings.get().all.is_empty() {
                siblings.remove();
            }
        }
        if let Some(lease) = node.lease {
            self.leases.detach(lease, key);
        }
        self.watchers.delete(key, node.created);
    }

    fn insert_node(&mut self, key: &Key, value: Bytes, lease: Option<LeaseId>, nonce: Option<Nonce>) -> Entry {
        self.writes += 1;
        let node = Node {
            value,
            created: self.writes,
            written: self.writes,
            lease,
            nonce,
        };
        if let Some(parent) = key.parent() {
            self.children.entry(parent).or_default().insert(key, node.created);
        }
        if let Some(lease) = lease {
            self.leases.attach(lease, key);
        }
        let entry = node.entry(key);
        self.nodes.insert(key.clone(), node);
        self.watchers.put(&entry);
        entry
    }

    fn has_children(&self, key: &Key) -> bool {
        self.children.contains_key(key)
    }

    fn check_version(&self, operation: Operation, key: &Key, expected: Expect) -> Result<()> {
        let version = match self.nodes.get(key) {
            None => return Err(not_found(operation, key)),
            Some(node) => node.version(),
        };
        match expected {
            Expect::Version(expected) if expected != version => Err(Error::definite(
                operation,
                Some(key),
                ErrorKind::VersionMismatch(Some(version)),
            )),
            _ => Ok(()),
        }
    }
}

/// The name of what a create makes: for a sequential one it is made of the nonce, which no other create has.
pub(crate) fn entry_key(operation: Operation, create: &Create) -> Result<Key> {
    let CreateMode::Sequential(_) = create.mode else {
        return Ok(create.key.clone());
    };
    let named = create.key.child(format!("~{}", create.nonce));
    named.map_err(|invalid: InvalidKey| Error::definite(operation, Some(&create.key), ErrorKind::InvalidKey(invalid)))
}

fn not_found(operation: Operation, key: &Key) -> Error {
    Error::definite(operation, Some(key), ErrorKind::NotFound)
}
