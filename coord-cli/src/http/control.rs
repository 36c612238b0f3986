use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::proof::{Asked, Proof};

/// How long a challenge may be answered.
const FRESH: Duration = Duration::from_secs(30);
/// How many right answers are remembered; who gives more of them within [`FRESH`] has to wait.
const MAX_USED: usize = 4096;

/// Who may ask this node about its cluster and tell it what to do: whoever knows the secret. See [`Proof`].
///
/// Challenges are not remembered but recognised, by a key of this process; only the ones that were answered right are,
/// because each is good once. So strangers who ask for challenges without end are in nobody's way.
pub(crate) struct Control {
    secret: Option<Vec<u8>>,
    key: [u8; 32],
    start: Instant,
    used: Mutex<BTreeMap<String, Instant>>,
}

/// What was found out about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It comes from somebody who knows the secret, now; or this node has none.
    Right,
    /// It does not.
    Wrong,
    /// It claims a secret, and this node has none: it is meant for another one.
    NoSecretHere,
    /// Right, and one too many.
    TooMany,
}

// === impl Control ===

impl Control {
    pub(crate) fn new(secret: Option<Vec<u8>>) -> Control {
        Control {
            secret,
            key: rand::random(),
            start: Instant::now(),
            used: Mutex::default(),
        }
    }

    /// Whether strangers are told nothing.
    pub(super) fn is_guarded(&self) -> bool {
        self.secret.is_some()
    }

    pub(super) fn challenge(&self) -> String {
        let made = self.start.elapsed().as_millis() as u64;
        let challenge = format!("{made:016x}{:032x}", rand::random::<u128>());
        let seal = self.seal(&challenge).unwrap_or_default();
        challenge + &seal
    }

    /// Each challenge is good once. Without a secret everybody who can connect is believed (the command refuses that beyond
    /// loopback), but still has to ask for a challenge: a web page in a browser on this machine cannot.
    pub(super) fn judge(&self, proof: &Proof, asked: Asked<'_>) -> Verdict {
        if !self.is_fresh(&proof.challenge) {
            return Verdict::Wrong;
        }
        match &self.secret {
            None if proof.claims() => return Verdict::NoSecretHere,
            Some(secret) if !proof.is_right(secret, asked) => return Verdict::Wrong,
            _ => {}
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < FRESH);
        if used.contains_key(&proof.challenge) {
            Verdict::Wrong
        } else if used.len() >= MAX_USED {
            Verdict::TooMany
        } else {
            used.insert(proof.challenge.clone(), Instant::now());
            Verdict::Right
        }
    }

    /// Proves to whoever asked that this node, too, knows the secret.
    pub(super) fn answer(&self, proof: &Proof, status: u16, body: &[u8]) -> Option<String> {
        proof.answer(self.secret.as_deref()?, status, body)
    }

    fn is_fresh(&self, challenge: &str) -> bool {
        let Some((words, seal)) = challenge.split_at_checked(48) else {
            return false;
        };
        if self.seal(words).as_deref() != Some(seal) {
            return false;
        }
        let made = words.get(..16).and_then(|made| u64::from_str_radix(made, 16).ok());
        let age = made.map(|made| self.start.elapsed().saturating_sub(Duration::from_millis(made)));
        age.is_some_and(|age| age < FRESH)
    }

    /// Under a key that nobody else knows, over random words: no guess comes near, so comparing need not take constant time.
    fn seal(&self, words: &str) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(words.as_bytes());
        let bytes = mac.finalize().into_bytes();
        Some(bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Control")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sesame";
    const LEAVE: Asked<'static> = Asked {
        method: "POST",
        path: "/cluster/leave",
        body: b"{}",
    };

    #[test]
    fn only_who_knows_the_secret_is_believed_and_only_once() {
        let control = Control::new(Some(SECRET.to_vec()));
        let fresh = |secret| Proof::new(secret, &control.challenge(), LEAVE);

        let right = fresh(Some(SECRET));
        assert_eq!(control.judge(&right, LEAVE), Verdict::Right);
        assert_eq!(control.judge(&right, LEAVE), Verdict::Wrong, "a recorded request");
        for wrong in [Some(b"guess".as_slice()), None] {
            assert_eq!(control.judge(&fresh(wrong), LEAVE), Verdict::Wrong);
        }
        let another = Control::new(Some(SECRET.to_vec())).challenge();
        for own in ["0", "", "é", &another, &"0".repeat(80)] {
            let proof = Proof::new(Some(SECRET), own, LEAVE);
            assert_eq!(control.judge(&proof, LEAVE), Verdict::Wrong, "a challenge of one's own");
        }
        for other in [
            Asked { method: "GET", ..LEAVE },
            Asked {
                path: "/cluster/down",
                ..LEAVE
            },
            Asked { body: b"{ }", ..LEAVE },
        ] {
            assert_eq!(control.judge(&fresh(Some(SECRET)), other), Verdict::Wrong);
        }
    }

    #[test]
    fn a_node_without_a_secret_takes_no_order_that_is_meant_for_one_with_a_secret() {
        let control = Control::new(None);
        let proof = |secret| Proof::new(secret, &control.challenge(), LEAVE);
        assert_eq!(control.judge(&proof(Some(SECRET)), LEAVE), Verdict::NoSecretHere);
        assert_eq!(control.judge(&proof(None), LEAVE), Verdict::Right);
    }

    #[test]
    fn strangers_who_ask_for_challenges_without_end_are_in_nobodys_way() {
        let control = Control::new(Some(SECRET.to_vec()));
        let mine = control.challenge();
        for _ in 0..MAX_USED * 2 {
            let stranger = Proof::new(None, &control.challenge(), LEAVE);
            assert_eq!(control.judge(&stranger, LEAVE), Verdict::Wrong);
        }
        assert!(control.used.lock().unwrap().is_empty());
        assert_eq!(
            control.judge(&Proof::new(Some(SECRET), &mine, LEAVE), LEAVE),
            Verdict::Right
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let control = Control::new(None);
        let ask = || control.judge(&Proof::new(None, &control.challenge(), LEAVE), LEAVE);
        assert!((0..MAX_USED).all(|_| ask() == Verdict::Right));
        assert_eq!(ask(), Verdict::TooMany);
    }
}
