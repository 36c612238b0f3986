use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::message::Envelope;

/// How many bytes of the HMAC travel: 128 bits, half of SHA-256, as RFC 2104 allows.
pub(crate) const TAG_BYTES: usize = 16;

/// A secret that the nodes of a cluster share; only who knows it is heard. Never shown, not even in debug output.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// A secret from its bytes; the trailing line break of a secret file does not count.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self(bytes.as_ref().trim_ascii_end().into())
    }

    /// The tag of a frame: over who sends, to whom, in which cluster, the how-manieth on this channel, and what.
    pub(crate) fn tag(&self, channel: &[u8; 16], envelope: &EnvelopeHead, counter: u64, payload: &[u8]) -> Tag {
        self.mac(channel, envelope, counter, payload)
            .map_or([0; TAG_BYTES], |mac| {
                let full: [u8; 32] = mac.finalize().into_bytes().into();
                std::array::from_fn(|i| full[i])
            })
    }

    /// Whether the tag is right, compared in constant time.
    pub(crate) fn verify(
        &self,
        tag: &[u8],
        channel: &[u8; 16],
        head: &EnvelopeHead,
        counter: u64,
        payload: &[u8],
    ) -> bool {
        tag.len() == TAG_BYTES
            && self
                .mac(channel, head, counter, payload)
                .is_some_and(|mac| mac.verify_truncated_left(tag).is_ok())
    }

    fn mac(&self, channel: &[u8; 16], head: &EnvelopeHead, counter: u64, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(b"coord-cluster-1");
        mac.update(channel);
        // Postcard puts the length before each string, so no two heads have the same bytes.
        mac.update(&postcard::to_stdvec(head).ok()?);
        mac.update(&counter.to_be_bytes());
        mac.update(payload);
        Some(mac)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

pub(crate) type Tag = [u8; TAG_BYTES];

/// What a frame says about itself beside its message.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct EnvelopeHead {
    pub(crate) from: crate::NodeId,
    pub(crate) to: crate::Address,
    pub(crate) cluster: crate::ClusterId,
}

impl EnvelopeHead {
    pub(crate) fn of(envelope: &Envelope) -> Self {
        Self {
            from: envelope.from.clone(),
            to: envelope.to.clone(),
            cluster: envelope.cluster,
        }
    }
}
