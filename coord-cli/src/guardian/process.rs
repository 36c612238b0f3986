use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use coordkit::{Env, Instant};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process_group, set_child_subreaper, wait, waitid,
};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::orders::{Limits, Order, Report};
use super::{LAUNCH, OURSELVES, Signals, tree};
use crate::output::tell;

/// Between two looks whether what was killed is gone.
const LOOK: Duration = Duration::from_millis(5);

/// Watches over a job: for internal use.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    /// How long what is told to stop may take
    #[arg(long)]
    grace_ms: u64,
    /// When to tell the job to stop, if nothing else is said
    #[arg(long)]
    stop_at: u64,
    /// When to kill it
    #[arg(long)]
    kill_at: u64,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The job and what is to become of it.
struct Watch {
    env: Env,
    grace: Duration,
    limits: Limits,
    /// The job's first process, which leads its group; until it was waited for, the number is no other's.
    group: Option<Pid>,
    /// How the first process has ended.
    code: Option<i32>,
    /// When everything was told to stop.
    told: Option<Instant>,
    /// Leadership is at its end: whatever is left goes.
    forced: bool,
    /// No more grace.
    killing: bool,
    /// Somebody asked the job to end, which is not to be said twice.
    asked: bool,
    /// Nobody gives orders any more.
    alone: bool,
    reports: StdStream,
}

// === impl Guard ===

impl Guard {
    /// The whole life of a guardian, in this one thread: the parent-death signal belongs to the thread that starts the
    /// job. Returns its exit code.
    pub(crate) fn run(&self) -> i32 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = runtime.and_then(|runtime| runtime.block_on(self.watch_over()));
        match ended {
            Ok(()) => 0,
            Err(error) => {
                tell(format!("the guardian failed: {error}"));
                1
            }
        }
    }

    async fn watch_over(&self) -> io::Result<()> {
        // A service manager signals all of a service's processes: this one goes last.
        let mut deaf = Signals::listen()?;
        let _ = rustix::thread::set_name(c"job-guardian");
        set_child_subreaper(Some(getpid()))?;
        let mut children = signal(SignalKind::child())?;
        let orders = StdStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
        let stdin = receive(&orders)?;
        let reports = orders.try_clone()?;
        orders.set_nonblocking(true)?;
        let mut orders = BufReader::new(UnixStream::from_std(orders)?).lines();
        let mut watch = Watch {
            env: Env::system(),
            grace: Duration::from_millis(self.grace_ms),
            limits: Limits {
                stop_at: self.stop_at,
                kill_at: self.kill_at,
            },
            group: None,
            code: None,
            told: None,
            forced: false,
            killing: false,
            asked: false,
            alone: false,
            reports,
        };
        // The machine may have stood still since this was ordered.
        if watch.env.now() >= watch.limits.stop_at() {
            watch.forced = true;
            watch.report(&Report::Stopping);
            watch.report_end();
            return Ok(());
        }
        match launch(&self.command, stdin) {
            Ok(group) => {
                watch.group = Some(group);
                let pid = group.as_raw_nonzero().get();
                watch.report(&Report::Started { pid });
            }
            Err(error) => {
                let problem = error.to_string();
                watch.report(&Report::Failed { problem });
                return Ok(());
            }
        }
        loop {
            if watch.reap() {
                watch.report_end();
                return Ok(());
            }
            tokio::select! {
                biased;
                order = next_order(&mut orders), if !watch.alone => watch.obey(order),
                () = watch.env.sleep_until(watch.due()) => watch.act(),
                _ = children.recv() => {}
                _ = deaf.next() => {}
            }
        }
    }
}

/// The end of the pipe, and whatever makes no sense, is `Kill`: nobody is there any more who knows better.
async fn next_order(orders: &mut Lines<BufReader<UnixStream>>) -> Option<Order> {
    let line = orders.next_line().await.ok().flatten()?;
    serde_json::from_str(&line).ok()
}

/// The job's standard input, which comes with the first byte.
fn receive(orders: &StdStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        orders,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::other("it was not started by coord run"))
}

fn launch(command: &[OsString], stdin: OwnedFd) -> io::Result<Pid> {
    let child = Command::new(OURSELVES)
        .arg0("coord")
        .args([LAUNCH, &getpid().to_string(), "--"])
        .args(command)
        .stdin(Stdio::from(stdin))
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

// === impl Watch ===

impl Watch {
    fn obey(&mut self, order: Option<Order>) {
        match order {
            // Told to stop is told to stop: a renewal that comes later does not undo it.
            Some(Order::Limits(limits)) if !self.forced => self.limits = limits,
            Some(Order::Limits(_)) => {}
            Some(Order::Signal(raw)) => {
                if let Some(signal) = Signal::from_named_raw(raw) {
                    self.signal_group(signal);
                    self.asked |= signal == Signal::TERM;
                }
            }
            Some(Order::Kill) => self.kill(),
            None => {
                self.alone = true;
                self.kill();
            }
        }
    }

    /// When there is something to do without an order.
    fn due(&self) -> Instant {
        if self.killing {
            return self.env.now() + LOOK;
        }
        let kill_at = self.limits.kill_at();
        let leftovers = self.code.and(self.told).map(|told| (told + self.grace).min(kill_at));
        match leftovers {
            Some(over) => over,
            None if self.forced => kill_at,
            None => self.limits.stop_at(),
        }
    }

    fn act(&mut self) {
        let now = self.env.now();
        if self.killing || self.code.is_some() {
            // What the job has left behind did not stop when told.
            self.kill_leftovers();
        } else if self.forced && now >= self.limits.kill_at() {
            self.kill();
        } else if !self.forced && now >= self.limits.stop_at() {
            self.forced = true;
            self.report(&Report::Stopping);
            self.tell_to_stop();
        }
    }

    fn tell_to_stop(&mut self) {
        self.told = Some(self.env.now());
        if !self.asked {
            self.asked = true;
            self.signal_group(Signal::TERM);
        }
        // What is stopped hears nothing.
        self.signal_group(Signal::CONT);
    }

    fn signal_group(&self, signal: Signal) {
        match self.group {
            // An error means that it has ended.
            Some(group) if self.code.is_none() => drop(kill_process_group(group, signal)),
            _ => drop(tree::signal_all(signal)),
        }
    }

    /// Leadership is over.
    fn kill(&mut self) {
        self.forced = true;
        self.kill_leftovers();
    }

    fn kill_leftovers(&mut self) {
        self.killing = true;
        if self.code.is_none() {
            self.signal_group(Signal::KILL);
        }
        let sent = tree::signal_all(Signal::KILL);
        if sent.reached == 0 && sent.refused > 0 && self.code.is_some() {
            tell(format!(
                "{} processes of the job run as another user and cannot be killed",
                sent.refused
            ));
            self.report_end();
            std::process::exit(1);
        }
    }

    /// Takes note of what has ended or was stopped; true when nothing is left.
    fn reap(&mut self) -> bool {
        if self.killing && self.first_has_ended() {
            // While nobody has waited for it, its number is no other's.
            self.signal_group(Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if Some(pid) == self.group => {
                    if let Some(signal) = status.stopping_signal() {
                        self.report(&Report::Paused { signal });
                    } else if let Some(code) = status.exit_status() {
                        self.ended(code);
                    } else if let Some(signal) = status.terminating_signal() {
                        self.ended(128 + signal);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                // No children any more.
                Err(_) => return true,
            }
        }
    }

    fn first_has_ended(&self) -> bool {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.group
            .is_some_and(|group| matches!(waitid(WaitId::Pid(group), peek), Ok(Some(_))))
    }

    /// The first process has ended; what it has left behind is told to, in whatever group it may be.
    fn ended(&mut self, code: i32) {
        self.code = Some(code);
        if self.told.is_none() {
            self.told = Some(self.env.now());
        }
        if !self.asked {
            self.asked = true;
            tree::signal_all(Signal::TERM);
        }
    }

    fn report_end(&self) {
        self.report(&Report::Ended {
            code: self.code.unwrap_or(128 + Signal::KILL.as_raw()),
            forced: self.forced,
        });
    }

    fn report(&self, report: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(report) else {
            return;
        };
        line.push(b'\n');
        // Few and short: they fit into the pipe. Whoever does not listen any more is gone.
        let _ = send(&self.reports, &line, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}
