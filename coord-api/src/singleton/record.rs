use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::{Checkpoint, CheckpointError, Entry, Progress};

/// A checkpoint as the store holds it: this as one line of JSON, and behind it the state, byte for byte.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    token: u64,
    writer: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    done: bool,
}

pub(super) fn write(checkpoint: &Checkpoint) -> Bytes {
    let header = Header {
        token: checkpoint.token,
        writer: checkpoint.writer,
        step: checkpoint.progress.step().map(str::to_owned),
        done: checkpoint.progress.is_done(),
    };
    // Numbers and strings alone: this cannot fail.
    let header = serde_json::to_vec(&header).unwrap_or_default();
    let state = checkpoint.progress.state();
    let mut value = BytesMut::with_capacity(header.len() + 1 + state.len());
    value.put(&header[..]);
    value.put_u8(b'\n');
    value.put(state);
    value.freeze()
}

pub(super) fn read(entry: &Entry) -> Result<Checkpoint, CheckpointError> {
    let unreadable = |problem: String| CheckpointError::Unreadable {
        key: entry.key.clone(),
        problem,
    };
    let value = &entry.value;
    let Some(end) = value.iter().position(|byte| *byte == b'\n') else {
        return Err(unreadable("its first line does not end".to_owned()));
    };
    let header: Header = serde_json::from_slice(&value[..end]).map_err(|error| unreadable(error.to_string()))?;
    let progress = match (header.done, header.step) {
        (true, _) => Progress::Done,
        (false, Some(step)) => Progress::Next {
            step,
            state: value.slice(end + 1..),
        },
        (false, None) => Progress::Start,
    };
    Ok(Checkpoint {
        token: header.token,
        writer: header.writer,
        progress,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Version};

    fn entry(value: Bytes) -> Entry {
        Entry {
            key: Key::new("/job/checkpoint").unwrap(),
            value,
            version: Version::new(1, 1),
            created: 1,
            lease: None,
        }
    }

    #[test]
    fn a_checkpoint_survives_the_store_byte_for_byte() {
        let next = Progress::Next {
            step: "a \"step\"\n".to_owned(),
            state: Bytes::from_static(b"\n\0\xff\n"),
        };
        for progress in [Progress::Start, next, Progress::Done] {
            let checkpoint = Checkpoint {
                token: u64::MAX,
                writer: 7,
                progress,
            };
            assert_eq!(read(&entry(write(&checkpoint))).unwrap(), checkpoint);
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_an_error_that_names_the_key() {
        for bad in ["", "hello", "hello\n", "{}\n", r#"{"token":-1,"writer":0}"#] {
            let error = read(&entry(bad.into())).unwrap_err().to_string();
            assert!(error.contains("/job/checkpoint"), "{error}");
        }
    }
}
