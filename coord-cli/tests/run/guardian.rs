//! The guardian by itself.

use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// As when the machine stood still between the order and the guardian's start.
#[test]
fn a_guardian_that_starts_too_late_starts_no_job() {
    let (mut ours, its) = UnixStream::pair().unwrap();
    let mut guardian = Command::new(env!("CARGO_BIN_EXE_coord"))
        .args([
            "__guardian",
            "--grace-ms=1000",
            "--stop-at=1",
            "--kill-at=2",
            "--",
            "true",
        ])
        .stdin(Stdio::from(OwnedFd::from(its)))
        .spawn()
        .unwrap();
    let stdin = std::fs::File::open("/dev/null").unwrap();
    let descriptors = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(&ours, &[IoSlice::new(b"!")], &mut control, SendFlags::empty()).unwrap();
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert!(guardian.wait().unwrap().success());
    assert!(!said.contains("Started"), "{said}");
    assert!(said.contains(r#""forced":true"#), "{said}");
}
