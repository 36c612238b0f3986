use bytes::Bytes;
use coord_api::Nonce;

/// `\0coord1 ` + the nonce in 32 hex digits + `\n` stand before the value of an entry with a fixed name.
///
/// The nonce tells whether an entry is the one that a create with a lost answer made. A NUL comes first so that no
/// text that somebody else wrote is taken for an envelope; the rest is text so that `zkCli` can show it.
const MAGIC: &[u8] = b"\0coord1 ";
const DIGITS: usize = 32;
const LENGTH: usize = MAGIC.len() + DIGITS + 1;
/// In an envelope that is there only because the value itself looks like one.
const NONE: Nonce = Nonce(0);

/// What a znode holds, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) nonce: Option<Nonce>,
    pub(crate) value: Bytes,
}

/// The bytes to store for a value.
pub(crate) fn seal(nonce: Option<Nonce>, value: &[u8]) -> Vec<u8> {
    if nonce.is_none() && !value.starts_with(MAGIC) {
        return value.to_vec();
    }
    let mut sealed = Vec::with_capacity(LENGTH + value.len());
    sealed.extend_from_slice(MAGIC);
    sealed.extend_from_slice(nonce.unwrap_or(NONE).to_string().as_bytes());
    sealed.push(b'\n');
    sealed.extend_from_slice(value);
    sealed
}

/// The value that was stored; bytes without an envelope (a parent, a sequential entry, somebody else's znode) as they
/// are.
pub(crate) fn open(stored: Vec<u8>) -> Opened {
    let stored = Bytes::from(stored);
    match nonce_of(&stored) {
        None => Opened {
            nonce: None,
            value: stored,
        },
        Some(nonce) => Opened {
            nonce: (nonce != NONE).then_some(nonce),
            value: stored.slice(LENGTH..),
        },
    }
}

fn nonce_of(stored: &[u8]) -> Option<Nonce> {
    let rest = stored.strip_prefix(MAGIC)?;
    if rest.get(DIGITS) != Some(&b'\n') {
        return None;
    }
    let digits = std::str::from_utf8(rest.get(..DIGITS)?).ok()?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(Nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_byte_for_byte_with_and_without_nonce() {
        let nested = seal(Some(Nonce(7)), b"inner");
        for value in [&b""[..], b"plain", b"\0coord1 ", b"\0\xff", &nested] {
            for nonce in [None, Some(Nonce(1)), Some(Nonce(u128::MAX))] {
                let opened = open(seal(nonce, value));
                assert_eq!((opened.nonce, &opened.value[..]), (nonce, value));
            }
        }
    }

    #[test]
    fn what_others_wrote_is_read_as_it_is() {
        for foreign in [
            &b"text"[..],
            b"\0coord1 short",
            b"\0coord2 00000000000000000000000000000001\nx",
        ] {
            let opened = open(foreign.to_vec());
            assert_eq!((opened.nonce, &opened.value[..]), (None, foreign));
        }
        let plus = format!("\0coord1 +{}\nx", "0".repeat(31));
        assert_eq!(open(plus.clone().into_bytes()).value, plus);
    }
}
