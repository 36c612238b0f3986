use serde::{Deserialize, Serialize};

use super::secret::{EnvelopeHead, Secret, Tag};
use crate::{Envelope, Message};

/// The first bytes of the listener's greeting: "coord cluster", and the version of the protocol.
pub(crate) const MAGIC: [u8; 4] = *b"CCL1";
/// The version inside each frame; a frame of another version is dropped.
pub(crate) const VERSION: u8 = 1;
/// The most bytes that a frame may have: the state of several thousand nodes.
pub const MAX_FRAME_BYTES: usize = 2 * 1024 * 1024;

/// Why a frame was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It does not decode.
    #[error("malformed")]
    Malformed,
    /// It is longer than [`MAX_FRAME_BYTES`].
    #[error("oversized")]
    Oversized,
    /// Its version is another.
    #[error("of another version")]
    Version,
    /// Its tag is wrong, missing, or there although no secret is set.
    #[error("not authentic")]
    Unauthentic,
    /// Its counter was used before on this channel.
    #[error("replayed")]
    Replayed,
    /// It is addressed to another node.
    #[error("misdirected")]
    Misdirected,
}

#[derive(Serialize, Deserialize)]
struct Frame<'a> {
    version: u8,
    /// Left out where it is the same as in the frame before.
    head: Option<EnvelopeHead>,
    counter: u64,
    payload: &'a [u8],
    tag: Option<Tag>,
}

/// The writing end of a channel.
pub(crate) struct FrameWriter {
    channel: [u8; 16],
    secret: Option<Secret>,
    last: Option<EnvelopeHead>,
    counter: u64,
}

impl FrameWriter {
    pub(crate) fn new(channel: [u8; 16], secret: Option<Secret>) -> Self {
        Self {
            channel,
            secret,
            last: None,
            counter: 0,
        }
    }

    /// The frame with its length in front.
    pub(crate) fn encode(&mut self, envelope: &Envelope) -> Result<Vec<u8>, FrameError> {
        let payload = postcard::to_stdvec(&envelope.message).map_err(|_| FrameError::Malformed)?;
        let head = EnvelopeHead::of(envelope);
        let counter = self.counter + 1;
        let tag = self
            .secret
            .as_ref()
            .map(|secret| secret.tag(&self.channel, &head, counter, &payload));
        let news = (self.last.as_ref() != Some(&head)).then(|| head.clone());
        let frame = Frame {
            version: VERSION,
            head: news,
            counter,
            payload: &payload,
            tag,
        };
        let mut bytes = postcard::to_extend(&frame, vec![0; 4]).map_err(|_| FrameError::Malformed)?;
        let length = bytes.len() - 4;
        if length > MAX_FRAME_BYTES {
            return Err(FrameError::Oversized);
        }
        bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
        self.counter = counter;
        self.last = Some(head);
        Ok(bytes)
    }
}

/// The reading end of a channel. Public so that it can be fuzzed: it takes any bytes and never panics.
pub struct FrameReader {
    channel: [u8; 16],
    secret: Option<Secret>,
    me: crate::Address,
    last: Option<EnvelopeHead>,
    counter: u64,
}

impl FrameReader {
    /// A reader for the node at `me`. `channel` is the nonce of the greeting, which makes a recorded frame worthless
    /// on any other connection.
    pub fn new(channel: [u8; 16], secret: Option<Secret>, me: crate::Address) -> Self {
        Self {
            channel,
            secret,
            me,
            last: None,
            counter: 0,
        }
    }

    /// Takes the body of one frame, without the length.
    ///
    /// # Errors
    /// Why the frame was not accepted.
    pub fn decode(&mut self, body: &[u8]) -> Result<Envelope, FrameError> {
        if body.len() > MAX_FRAME_BYTES {
            return Err(FrameError::Oversized);
        }
        if *body.first().ok_or(FrameError::Malformed)? != VERSION {
            return Err(FrameError::Version);
        }
        let frame: Frame<'_> = exactly(body)?;
        let head = frame
            .head
            .as_ref()
            .or(self.last.as_ref())
            .ok_or(FrameError::Malformed)?;
        let authentic = match (&self.secret, &frame.tag) {
            (None, None) => true,
            (Some(secret), Some(tag)) => secret.verify(tag, &self.channel, head, frame.counter, frame.payload),
            _ => false,
        };
        if !authentic {
            return Err(FrameError::Unauthentic);
        }
        if frame.counter <= self.counter {
            return Err(FrameError::Replayed);
        }
        if head.to != self.me {
            return Err(FrameError::Misdirected);
        }
        let message: Message = exactly(frame.payload)?;
        self.counter = frame.counter;
        if let Some(head) = frame.head {
            self.last = Some(head);
        }
        let head = self.last.clone().ok_or(FrameError::Malformed)?;
        Ok(Envelope {
            from: head.from,
            to: head.to,
            cluster: head.cluster,
            message,
        })
    }
}

/// Decodes, and refuses bytes that are left over.
fn exactly<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(FrameError::Malformed),
    }
}

/// Encodes messages as one channel would, bodies only: what a fuzzer starts from.
///
/// # Errors
/// When one of them is too large.
pub fn encode_bodies(
    channel: [u8; 16],
    secret: Option<Secret>,
    envelopes: &[Envelope],
) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut writer = FrameWriter::new(channel, secret);
    envelopes
        .iter()
        .map(|envelope| writer.encode(envelope).map(|mut bytes| bytes.split_off(4)))
        .collect()
}
