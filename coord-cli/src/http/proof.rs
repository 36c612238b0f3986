//! How two who know the same secret recognise each other without telling it.
//!
//! The node hands out a challenge, the command answers with a number of its own and an HMAC-SHA256 of both with what it
//! asks; the node's answer carries an HMAC of that and of the answer. So each side knows that the other one has the secret
//! now: a recorded question or answer is worthless, no clocks have to agree, and the secret never travels.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a request is about; the answer to another one proves nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
}

/// The value of the header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) challenge: String,
    nonce: String,
    /// Empty without a secret.
    tag: Vec<u8>,
}

// === impl Proof ===

impl Proof {
    /// The answer to a challenge. Without a secret it proves nothing but that one could read the challenge.
    pub(super) fn new(secret: Option<&[u8]>, challenge: &str, asked: Asked<'_>) -> Proof {
        let mut proof = Proof {
            challenge: challenge.to_owned(),
            nonce: format!("{:032x}", rand::random::<u128>()),
            tag: vec![],
        };
        if let Some(mac) = secret.and_then(|secret| proof.question(secret, asked)) {
            proof.tag = mac.finalize().into_bytes().to_vec();
        }
        proof
    }

    pub(super) fn parse(header: &str) -> Option<Proof> {
        let (challenge, rest) = header.split_once(':')?;
        let (nonce, tag) = rest.split_once(':')?;
        Some(Proof {
            challenge: challenge.to_owned(),
            nonce: nonce.to_owned(),
            tag: unhex(tag)?,
        })
    }

    pub(super) fn header(&self) -> String {
        format!("{}:{}:{}", self.challenge, self.nonce, hex(&self.tag))
    }

    /// Whether whoever asks claims to know a secret.
    pub(super) fn claims(&self) -> bool {
        !self.tag.is_empty()
    }

    /// Whether whoever asked knew the secret; compared in constant time.
    pub(super) fn is_right(&self, secret: &[u8], asked: Asked<'_>) -> bool {
        let mac = self.question(secret, asked);
        mac.is_some_and(|mac| mac.verify_slice(&self.tag).is_ok())
    }

    /// The header of the answer to this very request.
    pub(super) fn answer(&self, secret: &[u8], status: u16, body: &[u8]) -> Option<String> {
        let mac = self.reply(secret, status, body)?;
        Some(hex(&mac.finalize().into_bytes()))
    }

    /// Whether whoever answered this very request knew the secret.
    pub(super) fn is_answered_by(&self, header: &str, secret: &[u8], status: u16, body: &[u8]) -> bool {
        match (self.reply(secret, status, body), unhex(header)) {
            (Some(mac), Some(tag)) => mac.verify_slice(&tag).is_ok(),
            _ => false,
        }
    }

    fn question(&self, secret: &[u8], asked: Asked<'_>) -> Option<Hmac<Sha256>> {
        let method = asked.method.as_bytes();
        let (challenge, nonce) = (self.challenge.as_bytes(), self.nonce.as_bytes());
        let parts = [
            b"coord-control-2 question",
            challenge,
            nonce,
            method,
            asked.path.as_bytes(),
            asked.body,
        ];
        mac(secret, &parts)
    }

    /// Over the question's tag: and so over all that was asked, and over the number that the asking side drew.
    fn reply(&self, secret: &[u8], status: u16, body: &[u8]) -> Option<Hmac<Sha256>> {
        let status = status.to_be_bytes();
        mac(secret, &[b"coord-control-2 answer", &self.tag, &status, body])
    }
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in parts {
        // The length before each part: no two lists of parts are the same bytes.
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    Some(mac)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    const ASKED: Asked<'static> = Asked {
        method: "GET",
        path: "/cluster/members",
        body: b"",
    };

    #[test]
    fn an_answer_proves_the_secret_for_this_question_and_these_words_alone() {
        let proof = Proof::new(Some(SECRET), "challenge", ASKED);
        let answer = proof.answer(SECRET, 200, b"{}").unwrap();
        assert!(proof.is_answered_by(&answer, SECRET, 200, b"{}"));
        assert!(!proof.is_answered_by(&answer, SECRET, 403, b"{}"));
        assert!(!proof.is_answered_by(&answer, SECRET, 200, b"{ }"));
        assert!(!proof.is_answered_by(&answer, b"guess", 200, b"{}"));
        // Asked again under the challenge of before: the recorded answer is another question's.
        let again = Proof::new(Some(SECRET), "challenge", ASKED);
        assert!(!again.is_answered_by(&answer, SECRET, 200, b"{}"));
        for reflected in [hex(&proof.tag), String::new(), "zz".into(), "é0".into(), "0".into()] {
            assert!(!proof.is_answered_by(&reflected, SECRET, 200, b"{}"));
        }
    }

    #[test]
    fn a_header_survives_text_and_garbage_is_no_proof() {
        let proof = Proof::new(Some(SECRET), "challenge", ASKED);
        assert_eq!(Proof::parse(&proof.header()), Some(proof));
        for garbage in ["", ":", "a:b", "a:b:zz", "a:b:é0", "a:b:0", "a:b:c:d"] {
            assert_eq!(Proof::parse(garbage), None, "{garbage}");
        }
    }
}
