use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest segment of a [`Key`], in bytes.
const MAX_SEGMENT: usize = 255;
/// The longest [`Key`], in bytes.
const MAX_KEY: usize = 1024;
/// Names with this beginning belong to the drivers (guards, records of nonces) and are never visible.
const RESERVED: &str = ".coord";
/// Names with this beginning are those of sequential entries; only the store hands them out.
const SEQUENTIAL: char = '~';

/// The name of an entry: `/`-separated segments of `[A-Za-z0-9._~:@-]`.
///
/// A key starts with `/`, has no empty segment, no `.` or `..`, at most 255 bytes per segment and at most 1024 in all.
/// Segments that begin with `.coord` are reserved for the drivers. [`Key::root`] (`/`) is the parent of the first
/// level; it can be listed and watched for children, but is not itself an entry.
///
/// A key is never a prefix match: `/job` has nothing to do with `/job2`.
///
/// ```
/// use coord_api::Key;
///
/// let key: Key = "/jobs/nightly".parse()?;
/// assert_eq!(key.parent(), Some("/jobs".parse()?));
/// assert_eq!(key.name(), "nightly");
/// assert_eq!(Key::root().child("jobs")?.child("nightly")?, key);
/// assert!("/jobs//nightly".parse::<Key>().is_err());
/// assert!("/jobs/../other".parse::<Key>().is_err());
/// # Ok::<(), coord_api::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

/// Why a string is not a [`Key`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid key {key:?}: {rule}")]
pub struct InvalidKey {
    /// What was given, shortened if it was very long.
    pub key: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

// === impl Key ===

impl Key {
    /// The parent of all first-level keys.
    pub fn root() -> Key {
        Key("/".into())
    }

    /// Checks a string and makes it a key.
    pub fn new(key: impl AsRef<str>) -> Result<Key, InvalidKey> {
        let key = key.as_ref();
        match broken_rule(key) {
            None => Ok(Key(key.into())),
            Some(rule) => Err(InvalidKey {
                key: shortened(key),
                rule,
            }),
        }
    }

    /// The key one segment below this one.
    pub fn child(&self, segment: impl AsRef<str>) -> Result<Key, InvalidKey> {
        let segment = segment.as_ref();
        if segment.contains('/') {
            return Err(InvalidKey {
                key: shortened(segment),
                rule: "one segment must not contain '/'",
            });
        }
        Key::new(format!("{}/{segment}", self.as_dir()))
    }

    /// This key below `prefix`: `/b` joined to `/a` is `/a/b`.
    pub fn under(&self, prefix: &Key) -> Result<Key, InvalidKey> {
        match (prefix.is_root(), self.is_root()) {
            (true, _) => Ok(self.clone()),
            (_, true) => Ok(prefix.clone()),
            _ => Key::new(format!("{prefix}{self}")),
        }
    }

    /// This key as seen from `prefix`, if it lies at or below it: `/a/b` seen from `/a` is `/b`.
    pub fn relative_to(&self, prefix: &Key) -> Option<Key> {
        if prefix.is_root() {
            return Some(self.clone());
        }
        match self.0.strip_prefix(&*prefix.0)? {
            "" => Some(Key::root()),
            rest if rest.starts_with('/') => Some(Key(rest.into())),
            _ => None,
        }
    }

    /// The key one segment above, or `None` for the root.
    pub fn parent(&self) -> Option<Key> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            Some(0) | None => Some(Key::root()),
            Some(at) => Some(Key(self.0[..at].into())),
        }
    }

    /// The keys above this one, nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Key> + use<> {
        std::iter::successors(self.parent(), Key::parent).take_while(|key| !key.is_root())
    }

    /// The last segment; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// Whether this is the root, `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// Whether the name is one that the store handed out for a sequential entry.
    pub fn is_sequential(&self) -> bool {
        self.name().starts_with(SEQUENTIAL)
    }

    /// Whether `self` is an immediate child of `parent`.
    pub fn is_child_of(&self, parent: &Key) -> bool {
        !self.is_root()
            && self
                .0
                .strip_suffix(self.name())
                .is_some_and(|dir| dir == format!("{}/", parent.as_dir()))
    }

    /// The key as text, with its leading `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text to which `/segment` can be added: empty for the root.
    fn as_dir(&self) -> &str {
        if self.is_root() { "" } else { &self.0 }
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(key: &str) -> Result<Key, InvalidKey> {
        Key::new(key)
    }
}

impl TryFrom<&str> for Key {
    type Error = InvalidKey;

    fn try_from(key: &str) -> Result<Key, InvalidKey> {
        Key::new(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

fn broken_rule(key: &str) -> Option<&'static str> {
    if key == "/" {
        return None;
    }
    let Some(path) = key.strip_prefix('/') else {
        return Some("a key starts with '/'");
    };
    if key.len() > MAX_KEY {
        return Some("a key has at most 1024 bytes");
    }
    path.split('/').find_map(broken_segment_rule)
}

fn broken_segment_rule(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("no empty segment: neither '//' nor a '/' at the end"),
        "." | ".." => Some("no '.' or '..' as a segment"),
        _ if segment.len() > MAX_SEGMENT => Some("a segment has at most 255 bytes"),
        _ if segment.starts_with(RESERVED) => Some("segments that begin with '.coord' are reserved for the drivers"),
        _ if !segment.bytes().all(allowed) => Some("only letters, digits and . _ ~ : @ - in a segment"),
        _ => None,
    }
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte)
}

/// Outside input goes into the error; a megabyte of it would not help anybody.
fn shortened(key: &str) -> String {
    match key.char_indices().nth(80) {
        None => key.to_owned(),
        Some((at, _)) => format!("{}…", &key[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_documented_charset_and_nothing_else() {
        for good in ["/", "/a", "/a/b", "/A-Z.0_9~x:y@z", "/...", "/.a"] {
            assert!(Key::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/..",
            "/a/../b",
            "/a b",
            "/ä",
            "/a\0",
            "/.coord",
            "/x/.coord-y",
        ] {
            assert!(Key::new(bad).is_err(), "{bad}");
        }
        assert!(Key::new(format!("/{}", "a".repeat(255))).is_ok());
        assert!(Key::new(format!("/{}", "a".repeat(256))).is_err());
        assert!(Key::new("/a".repeat(513)).is_err());
    }

    #[test]
    fn relative_to_never_matches_half_a_segment() {
        let job = Key::new("/job").unwrap();
        assert_eq!(Key::new("/job2").unwrap().relative_to(&job), None);
        assert_eq!(
            Key::new("/job/a").unwrap().relative_to(&job),
            Some(Key::new("/a").unwrap())
        );
        assert_eq!(job.relative_to(&job), Some(Key::root()));
    }

    #[test]
    fn child_and_parent_undo_each_other() {
        let a = Key::root().child("a").unwrap();
        assert_eq!(a.parent(), Some(Key::root()));
        assert!(a.is_child_of(&Key::root()));
        let b = a.child("b").unwrap();
        assert!(b.is_child_of(&a) && !b.is_child_of(&Key::root()));
        assert_eq!(b.ancestors().collect::<Vec<_>>(), [a]);
    }
}
