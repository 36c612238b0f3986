use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::shutdown::ignores_hangup;

/// Signals, in the order in which they came. Taken from the moment it is made on: none of them ends or stops this process
/// any more. (Handled, not ignored: what is ignored stays so in a program that is started.)
#[derive(Debug)]
pub(crate) struct Signals(mpsc::Receiver<i32>);

/// What ends or stops a process that does not handle it, and what else a job may want to hear of. Not SIGTTIN and
/// SIGTTOU: a write to the terminal that they interrupt would be tried again for ever.
const ALL: [Signal; 10] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TSTP,
    Signal::CONT,
    Signal::WINCH,
];

// === impl Signals ===

impl Signals {
    /// All that somebody may send us; not SIGHUP if we were started with nohup, which is for the job, too. Must be called
    /// within a runtime.
    pub(crate) fn listen() -> io::Result<Signals> {
        let (sender, receiver) = mpsc::channel(64);
        let deaf_to = ignores_hangup().then_some(Signal::HUP);
        for raw in ALL
            .into_iter()
            .filter(|signal| Some(*signal) != deaf_to)
            .map(Signal::as_raw)
        {
            let mut signals = signal(SignalKind::from_raw(raw))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    // A full queue of signals that nobody has taken yet: one more of them changes nothing.
                    let _ = sender.try_send(raw);
                }
            });
        }
        Ok(Signals(receiver))
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> i32 {
        match self.0.recv().await {
            Some(raw) => raw,
            None => std::future::pending().await,
        }
    }

    /// The next one that asks to end: SIGHUP, SIGINT, SIGQUIT or SIGTERM. Those before it are let go.
    pub(crate) async fn next_to_end(&mut self) -> i32 {
        let to_end = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].map(Signal::as_raw);
        loop {
            let raw = self.next().await;
            if to_end.contains(&raw) {
                return raw;
            }
        }
    }
}
