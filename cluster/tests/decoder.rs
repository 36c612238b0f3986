//! The decoder takes any bytes and never panics: a corpus of real frames, all their prefixes and mutations, and noise.
//! `COORD_CLUSTER_WRITE_CORPUS=1` writes the corpus anew after a change of the encoding.

use std::path::PathBuf;
use std::time::Duration;

use coord_cluster::{
    Address, ClusterId, Config, Core, Envelope, FrameError, FrameReader, Incarnation, Input, Message, NodeId, Output,
    Refusal, Secret, Strength, Successor, encode_bodies,
};
use proptest::prelude::*;

const CHANNEL: [u8; 16] = [7; 16];

fn corpus_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(corpus_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn node(port: u16) -> NodeId {
    NodeId::new(
        Address::new("localhost", port).unwrap(),
        Incarnation(1_700_000_000_000_000),
    )
}

fn me() -> Address {
    node(2).address
}

fn reader(secret: Option<&str>) -> FrameReader {
    FrameReader::new(CHANNEL, secret.map(Secret::new), me())
}

/// One message of each kind, the states taken from a small cluster that is alive.
fn messages() -> Vec<Message> {
    let mut core = Core::new(node(1), Config::default(), 1);
    core.handle(
        Input::Form {
            cluster: Some(ClusterId(99)),
        },
        Duration::ZERO,
    );
    let mut messages = vec![
        Message::Ping { whom: Incarnation(5) },
        Message::Pong,
        Message::Request,
        Message::Join {
            expected: ClusterId::NONE,
        },
        Message::Refused(Refusal::Stale(Incarnation(9))),
        Message::Identify,
        Message::Identity { cluster: ClusterId(3) },
        Message::Gone {
            known: Incarnation(2),
            strength: Strength { live: 3, first: me() },
        },
        Message::Moved(Successor {
            decision: 1,
            cluster: ClusterId(4),
            contacts: vec![me()],
        }),
    ];
    for port in 2..9 {
        let join = Message::Join {
            expected: ClusterId::NONE,
        };
        let envelope = Envelope {
            from: node(port),
            to: node(1).address,
            cluster: ClusterId::NONE,
            message: join,
        };
        let outputs = core.handle(Input::Receive(envelope), Duration::from_secs(1));
        messages.extend(outputs.into_iter().filter_map(|output| match output {
            Output::Send(envelope) => Some(envelope.message),
            _ => None,
        }));
    }
    for output in core.handle(Input::Tick, Duration::from_secs(3)) {
        if let Output::Send(envelope) = output {
            messages.push(envelope.message);
        }
    }
    let snapshot = core.snapshot().unwrap().clone();
    messages.push(Message::State {
        snapshot,
        seen: coord_cluster::SeenSet::new(),
        answer: true,
    });
    messages
}

fn envelopes() -> Vec<Envelope> {
    let envelope = |message| Envelope {
        from: node(1),
        to: me(),
        cluster: ClusterId(99),
        message,
    };
    messages().into_iter().map(envelope).collect()
}

#[test]
fn every_corpus_file_decodes_or_is_refused_as_its_name_says() {
    if std::env::var_os("COORD_CLUSTER_WRITE_CORPUS").is_some() {
        write_corpus();
    }
    let files = corpus();
    assert!(files.len() >= 15, "the corpus is there");
    for (name, bytes) in files {
        let result = reader(None).decode(&bytes);
        assert_eq!(result.is_ok(), name.starts_with("valid"), "{name}: {:?}", result.err());
    }
}

#[test]
fn all_prefixes_and_single_byte_changes_of_the_corpus_are_harmless() {
    for (_, bytes) in corpus() {
        for end in 0..bytes.len() {
            let _ = reader(None).decode(&bytes[..end]);
            for flip in [1u8, 0x80, 0xff] {
                let mut mutated = bytes.clone();
                mutated[end] ^= flip;
                let _ = reader(None).decode(&mutated);
            }
        }
    }
}

#[test]
fn replayed_frames_are_refused_and_so_are_frames_of_another_channel() {
    let secret = "s3cret";
    let bodies = encode_bodies(CHANNEL, Some(Secret::new(secret)), &envelopes()).unwrap();
    let mut reader_here = reader(Some(secret));
    for body in &bodies {
        reader_here.decode(body).unwrap();
        assert_eq!(reader_here.decode(body).unwrap_err(), FrameError::Replayed);
    }
    assert_eq!(
        reader_here.decode(&bodies[0]).unwrap_err(),
        FrameError::Replayed,
        "an older one"
    );
    let mut elsewhere = FrameReader::new([8; 16], Some(Secret::new(secret)), me());
    assert_eq!(
        elsewhere.decode(&bodies[0]).unwrap_err(),
        FrameError::Unauthentic,
        "recorded on another connection"
    );
}

#[test]
fn the_secret_decides() {
    let one = &envelopes()[..1];
    let open = &encode_bodies(CHANNEL, None, one).unwrap()[0];
    let tagged = &encode_bodies(CHANNEL, Some(Secret::new("right")), one).unwrap()[0];
    assert_eq!(reader(Some("right")).decode(open).unwrap_err(), FrameError::Unauthentic);
    assert_eq!(
        reader(Some("wrong")).decode(tagged).unwrap_err(),
        FrameError::Unauthentic
    );
    assert_eq!(reader(None).decode(tagged).unwrap_err(), FrameError::Unauthentic);
    assert!(reader(Some("right")).decode(tagged).is_ok());
    assert!(
        reader(Some("right\n")).decode(tagged).is_ok(),
        "a line break at the end of a secret file is no secret"
    );
    assert_eq!(format!("{:?}", Secret::new("right")), "Secret(redacted)");
}

#[test]
fn a_tag_covers_sender_receiver_cluster_counter_and_message() {
    let secret = Some(Secret::new("right"));
    let body = &encode_bodies(CHANNEL, secret, &envelopes()[..1]).unwrap()[0];
    for (position, bit) in (1..body.len()).flat_map(|position| (0..8).map(move |bit| (position, bit))) {
        let mut forged = body.clone();
        forged[position] ^= 1 << bit;
        assert!(
            reader(Some("right")).decode(&forged).is_err(),
            "bit {bit} of byte {position} can be changed unnoticed"
        );
    }
}

#[test]
fn a_frame_for_somebody_else_or_of_another_version_is_refused() {
    let body = encode_bodies(CHANNEL, None, &envelopes()[..1]).unwrap().remove(0);
    let mut other = FrameReader::new(CHANNEL, None, node(3).address);
    assert_eq!(other.decode(&body).unwrap_err(), FrameError::Misdirected);
    let mut future = body;
    future[0] = 2;
    assert_eq!(reader(None).decode(&future).unwrap_err(), FrameError::Version);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = reader(None).decode(&bytes);
        let _ = reader(Some("x")).decode(&bytes);
    }

    #[test]
    fn mutated_frames_never_panic_and_what_decodes_can_be_handled(
        file in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = corpus();
        let mut bytes = file.get(&files).1.clone();
        for (position, byte) in edits {
            let position = position.index(bytes.len().max(1));
            if let Some(cell) = bytes.get_mut(position) {
                *cell = byte;
            }
        }
        if let Ok(envelope) = reader(None).decode(&bytes) {
            let mut core = Core::new(node(2), Config::default(), 3);
            core.handle(Input::Form { cluster: Some(ClusterId(99)) }, Duration::ZERO);
            core.handle(Input::Receive(envelope), Duration::from_secs(1));
            core.handle(Input::Tick, Duration::from_secs(2));
            core.view();
        }
    }
}

/// A node in each phase of its life, with node 1 as its contact.
fn core_in(phase: u8) -> Core {
    let mut core = Core::new(node(2), Config::default(), 3);
    let form = Input::Form {
        cluster: Some(ClusterId(99)),
    };
    let join = Input::Join {
        contacts: vec![node(1).address],
        persist: true,
    };
    let inputs = match phase {
        0 => vec![],
        1 => vec![join],
        2 => vec![form],
        // Told to join another cluster.
        3 => vec![form, join],
        _ => {
            let within = Duration::from_secs(2);
            vec![form, Input::Leave { node: None, within }]
        }
    };
    for input in inputs {
        core.handle(input, Duration::ZERO);
    }
    core
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// What a peer that knows the secret can do at worst: well-formed frames with any content, in any order.
    #[test]
    fn any_sequence_of_mutated_messages_leaves_a_node_that_works(
        phase in 0u8..5,
        frames in proptest::collection::vec(
            (
                any::<prop::sample::Index>(),
                proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
                0u64..4000,
            ),
            1..25,
        ),
    ) {
        let files: Vec<_> = corpus().into_iter().filter(|(name, _)| name.starts_with("valid")).collect();
        let mut core = core_in(phase);
        let mut now = Duration::ZERO;
        for (file, edits, wait) in frames {
            let mut bytes = file.get(&files).1.clone();
            for (position, byte) in edits {
                let position = position.index(bytes.len());
                bytes[position] = byte;
            }
            if let Ok(envelope) = reader(None).decode(&bytes) {
                core.handle(Input::Receive(envelope), now);
            }
            now += Duration::from_millis(wait);
            core.handle(Input::Tick, now);
            prop_assert!(core.next_wake() > now, "a node that never sleeps");
            core.view();
            if let Some(snapshot) = core.snapshot() {
                prop_assert!(snapshot.state().digest_is_consistent());
            }
        }
    }
}

fn write_corpus() {
    let dir = corpus_dir();
    std::fs::create_dir_all(&dir).unwrap();
    for envelope in envelopes() {
        let name = envelope.message.name();
        let body = encode_bodies(CHANNEL, None, &[envelope]).unwrap().remove(0);
        std::fs::write(dir.join(format!("valid-{name}.bin")), &body).unwrap();
        std::fs::write(dir.join(format!("broken-{name}-cut.bin")), &body[..body.len() - 1]).unwrap();
        if name == "state" {
            let longer = [body.as_slice(), &[0]].concat();
            std::fs::write(dir.join("broken-state-trailing.bin"), longer).unwrap();
        }
    }
    // A sequence that claims to hold 2^60 members.
    let huge = [&[1u8, 0, 1, 12, 4], [0xff; 9].as_slice(), &[0x0f, 0]].concat();
    std::fs::write(dir.join("broken-huge-length.bin"), huge).unwrap();
    std::fs::write(dir.join("broken-empty.bin"), []).unwrap();
}
