use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How long a challenge may be answered, and how many are open at once.
const FRESH: Duration = Duration::from_secs(30);
const MAX_OPEN: usize = 256;

/// Who may tell this node what to do: whoever knows the secret.
///
/// The node hands out a challenge, good for one answer within 30 s; the answer is an HMAC-SHA256 of it with method, path
/// and body under the secret. So a recorded request is worthless, no clocks have to agree, and the secret never travels.
pub(crate) struct Control {
    secret: Option<Vec<u8>>,
    open: Mutex<BTreeMap<String, Instant>>,
}

// === impl Control ===

impl Control {
    pub(crate) fn new(secret: Option<Vec<u8>>) -> Control {
        Control {
            secret,
            open: Mutex::default(),
        }
    }

    /// A fresh challenge; `None` while too many are unanswered.
    pub(crate) fn challenge(&self) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, made| made.elapsed() < FRESH);
        if open.len() >= MAX_OPEN {
            return None;
        }
        let challenge = format!("{:032x}", rand::random::<u128>());
        open.insert(challenge.clone(), Instant::now());
        Some(challenge)
    }

    /// Whether this request comes from somebody who knows the secret. Each challenge is good once, right or wrong. Without
    /// a secret everybody who can connect is believed (the command refuses that beyond loopback), but still has to ask for
    /// a challenge: a web page in a browser on this machine cannot.
    pub(crate) fn allows(&self, proof: &str, path: &str, body: &[u8]) -> bool {
        let Some((challenge, answer)) = proof.split_once(':') else {
            return false;
        };
        let made = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(challenge)
        };
        if made.is_none_or(|made| made.elapsed() >= FRESH) {
            return false;
        }
        let Some(secret) = &self.secret else { return true };
        match (mac(secret, challenge, path, body), unhex(answer)) {
            (Some(mac), Some(answer)) => mac.verify_slice(&answer).is_ok(),
            _ => false,
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Control")
    }
}

/// The header's value for a request.
pub(super) fn proof(secret: Option<&[u8]>, challenge: &str, path: &str, body: &[u8]) -> String {
    let answer = secret.and_then(|secret| mac(secret, challenge, path, body));
    let bytes = answer
        .map(|mac| mac.finalize().into_bytes().to_vec())
        .unwrap_or_default();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{challenge}:{hex}")
}

fn mac(secret: &[u8], challenge: &str, path: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in [
        b"coord-control-1".as_slice(),
        challenge.as_bytes(),
        path.as_bytes(),
        body,
    ] {
        // The length before each part: no two requests are the same bytes.
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    Some(mac)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sesame";

    #[test]
    fn only_who_knows_the_secret_is_believed_and_only_once() {
        let control = Control::new(Some(SECRET.to_vec()));
        let fresh = || control.challenge().unwrap();
        let (path, body) = ("/cluster/leave", b"{}".as_slice());

        let right = proof(Some(SECRET), &fresh(), path, body);
        assert!(control.allows(&right, path, body));
        assert!(!control.allows(&right, path, body), "a recorded request");
        assert!(!control.allows(&proof(Some(b"guess"), &fresh(), path, body), path, body));
        assert!(!control.allows(&proof(None, &fresh(), path, body), path, body));
        assert!(
            !control.allows(&proof(Some(SECRET), "0", path, body), path, body),
            "a challenge of one's own"
        );
        assert!(!control.allows(&proof(Some(SECRET), &fresh(), "/cluster/down", body), path, body));
        assert!(!control.allows(&proof(Some(SECRET), &fresh(), path, b"{ }"), path, body));
        for garbage in ["", ":", "a:zz", "a:é0", "a:0"] {
            assert!(!control.allows(garbage, path, body));
        }
    }

    #[test]
    fn open_challenges_are_bounded() {
        let control = Control::new(None);
        let handed_out = (0..MAX_OPEN * 2).filter_map(|_| control.challenge()).count();
        assert_eq!(handed_out, MAX_OPEN);
    }
}
