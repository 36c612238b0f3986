use coord_api::{Bytes, Entry, Key, LeaseId, Nonce, Version};
use etcd_client::KeyValue;

/// Where our keys lie in etcd: `<root><key>`, the driver's own below `<root>/.coord/`, which no [`Key`] can name.
#[derive(Debug, Clone)]
pub(crate) struct Keyspace {
    /// Without a `/` at its end; empty for etcd's own root.
    root: String,
}

impl Keyspace {
    pub(crate) fn new(root: &Key) -> Keyspace {
        let root = if root.is_root() { "" } else { root.as_str() };
        Keyspace { root: root.to_owned() }
    }

    /// etcd's name of a key.
    pub(crate) fn name(&self, key: &Key) -> String {
        format!("{}{}", self.root, key)
    }

    /// The beginning of the names of all that lies below `key`, and where that range ends: `/job/` up to `/job0`.
    pub(crate) fn below(&self, key: &Key) -> (String, String) {
        let dir = self.dir(key);
        (format!("{dir}/"), format!("{dir}0"))
    }

    /// The range of the sequential children of `key`.
    pub(crate) fn sequential(&self, key: &Key) -> (String, String) {
        let dir = self.dir(key);
        (format!("{dir}/~"), format!("{dir}/\x7f"))
    }

    /// Where it is recorded that a create took effect, or may not any more.
    pub(crate) fn record(&self, nonce: Nonce) -> String {
        format!("{}/.coord/n/{nonce}", self.root)
    }

    /// A name under which nothing is ever stored.
    pub(crate) fn nothing(&self) -> String {
        format!("{}/.coord/nothing", self.root)
    }

    /// Our name of what etcd calls `name`; `None` for what we cannot name: the driver's own, and what others left there.
    pub(crate) fn key(&self, name: &[u8]) -> Option<Key> {
        let name = std::str::from_utf8(name).ok()?;
        let key = Key::new(name.strip_prefix(&self.root)?).ok()?;
        (!key.is_root()).then_some(key)
    }

    /// The entry that etcd holds, if we can name it.
    pub(crate) fn entry(&self, kv: KeyValue) -> Option<Entry> {
        let key = self.key(kv.key())?;
        Some(named(key, kv))
    }

    fn dir(&self, key: &Key) -> String {
        if key.is_root() {
            self.root.clone()
        } else {
            self.name(key)
        }
    }
}

/// The entry that etcd holds under the name of `key`.
pub(crate) fn named(key: Key, kv: KeyValue) -> Entry {
    let (created, written) = (unsigned(kv.create_revision()), unsigned(kv.mod_revision()));
    let lease = match kv.lease() {
        0 => None,
        id => Some(LeaseId(unsigned(id))),
    };
    Entry {
        key,
        version: Version::new(created, written),
        created,
        lease,
        value: Bytes::from(kv.into_key_value().1),
    }
}

/// etcd counts in signed numbers that are never negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// What no revision or lease equals if it did not come from etcd.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_below_the_root_and_come_back() {
        for (root, name) in [("/", "/a/b"), ("/app", "/app/a/b")] {
            let space = Keyspace::new(&Key::new(root).unwrap());
            let key = Key::new("/a/b").unwrap();
            assert_eq!(space.name(&key), name);
            assert_eq!(space.key(name.as_bytes()), Some(key));
        }
        let space = Keyspace::new(&Key::new("/app").unwrap());
        assert_eq!(space.below(&Key::root()), ("/app/".into(), "/app0".into()));
        assert_eq!(space.key(b"/app"), None);
        assert_eq!(space.key(b"/app2/x"), None);
        assert_eq!(space.key(space.record(Nonce(1)).as_bytes()), None);
        assert_eq!(space.key(b"/app/\xff"), None);
    }
}
