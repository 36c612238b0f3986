use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::orders::{Limits, Order, Report};
use super::{GUARDIAN, OURSELVES, tree};

/// Orders that a guardian which stands still has not taken; more are not kept.
const MOST_WAITING: usize = 4096;
/// How long a guardian that has told its last may take to end, and orphans to go.
const LAST: Duration = Duration::from_secs(2);

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) command: Vec<OsString>,
    /// What it is told beside our own environment; `None`: what it is not to see of that.
    pub(crate) environment: Vec<(&'static str, Option<OsString>)>,
    pub(crate) grace: Duration,
}

/// A job that runs under a guardian. Dropping it ends the job.
#[derive(Debug)]
pub(crate) struct Guarded {
    process: Child,
    orders: StdStream,
    reports: Lines<BufReader<UnixStream>>,
    waiting: Vec<u8>,
    group: Option<Pid>,
}

// === impl Guarded ===

impl Guarded {
    /// Starts the guardian, which starts the job.
    pub(crate) fn start(job: &Job, limits: Limits) -> io::Result<Guarded> {
        let (ours, its) = StdStream::pair()?;
        let mut command = Command::new(OURSELVES);
        command
            .arg0("coord")
            .arg(GUARDIAN)
            .arg(format!("--grace-ms={}", job.grace.as_millis()))
            .arg(format!("--stop-at={}", limits.stop_at))
            .arg(format!("--kill-at={}", limits.kill_at))
            .arg("--")
            .args(&job.command)
            // A terminal signals its whole foreground group; this one has to outlive it.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(its)));
        for (name, value) in &job.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let process = command.spawn()?;
        // With its copy of the other end, or the end of the guardian would not be the end of the pipe.
        drop(command);
        send_stdin(&ours)?;
        let orders = ours.try_clone()?;
        ours.set_nonblocking(true)?;
        let reports = UnixStream::from_std(ours)?;
        Ok(Guarded {
            process,
            orders,
            reports: BufReader::new(reports).lines(),
            waiting: Vec::new(),
            group: None,
        })
    }

    /// What the guardian says next; `None`: it is gone. Dropping the future loses nothing.
    pub(crate) async fn report(&mut self) -> Option<Report> {
        let line = self.reports.next_line().await.ok().flatten()?;
        let report = serde_json::from_str(&line).ok()?;
        if let Report::Started { pid } = &report {
            self.group = Pid::from_raw(*pid);
        }
        Some(report)
    }

    /// The job's process group.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.group
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.order(Order::Limits(limits));
    }

    pub(crate) fn signal(&mut self, raw: i32) {
        self.order(Order::Signal(raw));
    }

    /// Ends the job now; also if the guardian stands still.
    pub(crate) fn kill(&mut self) {
        self.order(Order::Kill);
        self.kill_group();
    }

    /// Never waits: a guardian that stands still must not keep us from anything.
    fn order(&mut self, order: Order) {
        if self.waiting.len() < MOST_WAITING
            && let Ok(mut line) = serde_json::to_vec(&order)
        {
            line.push(b'\n');
            self.waiting.append(&mut line);
        }
        while !self.waiting.is_empty() {
            match send(&self.orders, &self.waiting, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(_) => return,
            }
        }
    }

    fn kill_group(&self) {
        // Until the guardian has waited for it, and told us, the number is no other's.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// After [`Report::Ended`]: the guardian has nothing left to do.
    pub(crate) async fn finish(mut self) {
        let _ = tokio::time::timeout(LAST, self.process.wait()).await;
    }

    /// After the guardian was killed: its job is our orphan now, and goes.
    pub(crate) async fn sweep(mut self) {
        self.kill_group();
        let _ = tokio::time::timeout(LAST, self.process.wait()).await;
        let end = tokio::time::Instant::now() + LAST;
        while tokio::time::Instant::now() < end {
            tree::signal_all(Signal::KILL);
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The job's standard input is ours; the guardian's is the pipe.
fn send_stdin(to: &StdStream) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let descriptors = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(b"!")], &mut control, SendFlags::empty())?;
    Ok(())
}
