mod lead;
mod margins;
mod proclaimed;
mod terminal;
mod told;
mod turn;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coordkit::{Coordinator, CoordinatorCheckpoints, ElectionConfig, JobKeys, Key, Session};
use rustix::process::{getpid, set_child_subreaper};
use tracing::{info, warn};

use crate::app::{App, default_name, parse_name};
use crate::cli::Global;
use crate::exit::Exit;
use crate::guardian::{Job, Signals};
use crate::output::tell;
use lead::Ended;
use margins::Margins;
pub(crate) use proclaimed::Proclaimed;
use terminal::Terminal;
pub(crate) use turn::checkpoint_exit;

/// Run a command on one of n hot copies; the others wait until it ends or dies
///
/// The command runs in a process group of its own, with standard input, output and error of this one. Its environment
/// has COORD_JOB, COORD_NAME, COORD_TOKEN (the fencing token: hand it to whatever the job writes to), and what `coord
/// checkpoint` needs. Signals are passed on to all of it.
///
/// When leadership has to end (no renewal in time), the group gets SIGTERM, and SIGKILL after --grace, all before the
/// next copy can start; when somebody else ends it, SIGKILL at once. A guardian process sees to that also when this one
/// is killed or stopped. Then it waits for its turn again. When the command ends by itself, what it has left behind is
/// stopped, the next copy gets its turn, and the command's exit code is ours (128+n for a signal).
///
/// With --once, exit code 0 marks the run as done, and all other copies exit 0 without running it. A copy that crashes
/// between the command's end and the mark leaves it unmarked: the command runs again. So it has to bear that.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Which job: a name, or a key
    job: String,
    /// What this copy is called [default: host-pid]
    #[arg(long)]
    name: Option<String>,
    /// The time to live of its lease: the next copy starts at the latest this long after this machine died
    /// [default: 10s]
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
    /// From SIGTERM to SIGKILL when leadership has to end [default: a third of the granted ttl, 5s at most]
    #[arg(long, value_name = "DURATION", value_parser = coordkit::parse_duration)]
    grace: Option<Duration>,
    /// How long to wait for its turn; then exit 75, or 69 if the store cannot be reached [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = coordkit::parse_duration)]
    wait: Option<Duration>,
    /// Run it once: exit code 0 marks it as done for all copies
    #[arg(long)]
    once: bool,
    /// Which run it is, for a job that recurs: each is done once. A small entry per run stays in the store
    #[arg(long, value_name = "RUN", requires = "once", default_value = "once")]
    run_id: String,
    /// Exit 76 when leadership is lost instead of waiting for the next turn
    #[arg(long)]
    no_recontend: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  coord run nightly --store etcd://localhost:2379 -- sh -c 'echo \"running with token $COORD_TOKEN\"'
  coord run report --once --run-id \"$(date +%F)\" --store zk://localhost:2181 -- true

Exit codes: the command's own (128+n: ended by signal n; 126, 127: it cannot be run); 2 usage or configuration;
69 the store cannot be reached within --wait; 75 not its turn within --wait; 76 leadership lost with --no-recontend, or
before a run that SIGTERM has ended could be marked as done;
77 a newer leader has taken over before the run could be marked as done; 128+n ended by signal n while waiting.";

/// What one process does for its job.
struct Runner {
    app: App,
    args: Run,
    name: String,
    keys: JobKeys,
    /// The mark of the run, with `--once`.
    mark: Option<CoordinatorCheckpoints>,
    coordinator: Arc<dyn Coordinator>,
    session: Session,
}

/// What comes in from people.
struct Hands {
    signals: Signals,
    terminal: Terminal,
    /// Somebody sent us SIGTERM while the job ran: whatever follows, it is not another turn.
    asked: bool,
}

/// Where the job of this name lies.
pub(crate) fn job_key(job: &str) -> Result<Key, Exit> {
    parse_name("/jobs", job).map_err(|problem| Exit::usage(format!("job {job:?}: {problem}")))
}

/// What a job, or a run of it that is to be done once, has at the store.
pub(crate) fn job_keys(job: &str, run: Option<&str>) -> Result<JobKeys, Exit> {
    JobKeys::new(&job_key(job)?, run).map_err(|problem| Exit::usage(format!("job {job:?}: {problem}")))
}

// === impl Run ===

impl Run {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let signals = Signals::listen().map_err(|error| Exit::failed(format!("no signal handler: {error}")))?;
        if self.wait == Some(Duration::ZERO) {
            return Err(Exit::usage(
                "--wait 0s: no store answers in no time; give it a second or more",
            ));
        }
        let run = self.once.then_some(self.run_id.as_str());
        let keys = job_keys(&self.job, run)?;
        let app = App::new(global, App::flag("--ttl", "session.ttl", self.ttl.as_ref()))?;
        // Before anything is tried: with the ttl that is asked for. The store may grant another.
        Margins::new(app.config.session.ttl, self.grace).map_err(Exit::usage)?;
        let coordinator = app.connect()?;
        let mark = run.map(|_| CoordinatorCheckpoints::new(coordinator.clone(), keys.clone()));
        // Should the guardian be killed, what it watched over becomes ours.
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            warn!("not a subreaper: {error}");
        }
        let runner = Runner {
            name: self.name.clone().unwrap_or_else(default_name),
            session: Session::open(coordinator.clone(), app.config.session_config())?,
            args: self,
            app,
            keys,
            mark,
            coordinator,
        };
        let mut hands = Hands {
            signals,
            terminal: Terminal::open(),
            asked: false,
        };
        let result = runner.rounds(&mut hands).await;
        hands.terminal.take_back();
        runner.close(&mut hands).await;
        result
    }
}

// === impl Runner ===

impl Runner {
    /// One turn after the other, until there is an exit code.
    async fn rounds(&self, hands: &mut Hands) -> Result<(), Exit> {
        loop {
            let Some(lead) = self.turn(&mut hands.signals).await? else {
                let (job, run) = (&self.args.job, &self.args.run_id);
                tell(format!("{job}: run {run} is done already; nothing is left to do"));
                return Ok(());
            };
            let token = lead.leadership.token();
            match self.lead(lead, hands).await? {
                Ended::Exited(0) => return Ok(()),
                Ended::Exited(code) => return Err(Exit::silent(code)),
                Ended::Lost(reason) if self.args.no_recontend || hands.asked => {
                    return Err(Exit::leadership_lost(format!(
                        "{}: leadership (token {token}) lost: {reason}",
                        self.args.job
                    )));
                }
                Ended::Lost(reason) => tell(format!(
                    "{}: leadership (token {token}) lost: {reason}; waiting for the next turn",
                    self.args.job
                )),
            }
        }
    }

    fn election_config(&self, margins: Margins) -> ElectionConfig {
        ElectionConfig {
            stop_within: margins.stop_within,
            ..ElectionConfig::new(self.keys.candidates.clone(), &self.name)
        }
    }

    /// The command with what it needs to know.
    fn job(&self, token: u64, grace: Duration) -> Job {
        let run = self.args.once.then_some(&self.args.run_id);
        let mut environment: Vec<(&'static str, Option<OsString>)> = vec![
            ("COORD_JOB", Some(self.args.job.clone().into())),
            ("COORD_NAME", Some(self.name.clone().into())),
            ("COORD_TOKEN", Some(token.to_string().into())),
            // That of a job around this one is not ours.
            ("COORD_RUN_ID", run.map(OsString::from)),
            // The place alone: no user, no password.
            ("COORD_STORE", Some(self.app.config.store.to_string().into())),
        ];
        if let Some(file) = &self.app.config_file {
            // The command may change its directory.
            let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
            environment.push(("COORD_CONFIG", Some(file.into())));
        }
        Job {
            command: self.args.command.clone(),
            environment,
            grace,
        }
    }

    /// Waits for what is good manners and no more: while the store is out of reach, all that we have there ends with its
    /// lease. Bounded, and cut short by whoever asks once more to end.
    async fn briefly<T>(&self, hands: &mut Hands, what: impl Future<Output = T>) -> Option<T> {
        let patience = self.app.config.effective_call_deadline();
        tokio::select! {
            biased;
            done = what => Some(done),
            _ = hands.signals.next_to_end() => None,
            () = tokio::time::sleep(patience) => None,
        }
    }

    async fn close(&self, hands: &mut Hands) {
        let closing = async {
            self.session.close().await?;
            self.coordinator.close().await
        };
        match self.briefly(hands, closing).await {
            Some(Ok(())) => {}
            Some(Err(error)) => info!("close: {error}"),
            None => info!("close: no answer from the store; the lease ends by its ttl"),
        }
    }
}
