use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;

/// SIGINT, SIGTERM and SIGHUP, as a wish to end in order. The second one ends at once.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

// === impl Shutdown ===

impl Shutdown {
    /// Takes the signals from now on.
    pub(crate) fn listen() -> Result<Shutdown, Exit> {
        let (sender, receiver) = watch::channel(false);
        // Who started us with nohup wants us to outlive the terminal.
        let hangup = (!ignores_hangup()).then(SignalKind::hangup);
        for kind in [SignalKind::interrupt(), SignalKind::terminate()]
            .into_iter()
            .chain(hangup)
        {
            let mut signals = signal(kind).map_err(|error| Exit::failed(format!("no signal handler: {error}")))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    if sender.send_replace(true) {
                        std::process::exit(128 + kind.as_raw_value());
                    }
                }
            });
        }
        Ok(Shutdown(receiver))
    }

    /// Resolves when somebody wants us to end.
    pub(crate) async fn requested(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|wanted| *wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether SIGHUP was ignored by whoever started us. Nowhere but on Linux can that be told.
pub(crate) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}
