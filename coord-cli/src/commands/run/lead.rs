use std::pin::pin;
use std::time::Duration;

use coordkit::{CheckpointError, CheckpointStore, Instant, Leadership, Progress, Term};
use rustix::process::Signal;
use tracing::{debug, info, warn};

use super::margins::{Margins, TO_DIE};
use super::terminal::Terminal;
use super::told::Told;
use super::turn::{Lead, checkpoint_exit};
use super::{Hands, Proclaimed, Runner};
use crate::exit::Exit;
use crate::guardian::{Guarded, Limits, Report};

/// How often the guardian is told of renewals at least.
const OFTEN: Duration = Duration::from_millis(500);
/// And at most.
const SELDOM: Duration = Duration::from_millis(10);

/// How a turn has ended: the job, and all that it started, is gone.
pub(super) enum Ended {
    /// By itself, or because somebody asked; its exit code.
    Exited(i32),
    /// Leadership had to end.
    Lost(String),
}

/// What has happened to a job so far.
#[derive(Default)]
struct Seen {
    /// Why leadership is over, or about to be.
    lost: Option<String>,
    /// It is over, and the guardian knows.
    killed: bool,
}

impl Runner {
    /// Runs the job for as long as we lead, marks the run as done if that is wanted, and gives the turn to the next.
    pub(super) async fn lead(&self, lead: Lead, hands: &mut Hands) -> Result<Ended, Exit> {
        let Lead {
            mut leadership,
            margins,
        } = lead;
        let term = leadership.term();
        let ended = self.run_job(&mut leadership, margins, hands).await?;
        let ended = match ended {
            Ended::Exited(0) => self.mark_done(&term).await?,
            ended => ended,
        };
        // Only now, when the job has ended. After a loss there is nothing to wait for.
        if leadership.is_valid() {
            match self.briefly(hands, leadership.resign()).await {
                Some(Err(error)) => warn!("release: {error}"),
                Some(Ok(())) => {}
                None => warn!("release: no answer from the store; the entry ends with its lease"),
            }
        }
        Ok(ended)
    }

    async fn run_job(&self, leadership: &mut Leadership, margins: Margins, hands: &mut Hands) -> Result<Ended, Exit> {
        let Margins { grace, stop_within } = margins;
        let (term, env) = (leadership.term(), self.coordinator.env().clone());
        let token = term.token();
        let mut limits = limits(&term, stop_within);
        if term.is_stopped() || !term.is_valid() || env.now() >= term.stop_at() {
            return Ok(Ended::Lost("no renewal in time".to_owned()));
        }
        let mut guarded = Guarded::start(&self.job(token, grace), limits)
            .map_err(|error| Exit::failed(format!("no guardian for the job can be started: {error}")))?;
        let mut seen = Seen::default();
        let mut proclaim = pin!(leadership.proclaim(Proclaimed::now().text()));
        let mut proclaimed = false;
        let (code, forced) = loop {
            tokio::select! {
                biased;
                report = guarded.report() => match report {
                    Some(Report::Ended { code, forced }) => break (code, forced),
                    Some(Report::Started { pid }) => {
                        info!(job = %self.args.job, name = %self.name, token, pid, "running");
                    }
                    Some(Report::Failed { problem }) => {
                        return Err(Exit::failed(format!("no process for the job: {problem}")));
                    }
                    Some(Report::Paused { signal }) => paused(&mut guarded, signal, &mut hands.terminal),
                    Some(Report::Stopping) => drop(seen.lost.get_or_insert("no renewal in time".to_owned())),
                    None => {
                        guarded.sweep().await;
                        warn!(job = %self.args.job, "the guardian was killed, and the job with it");
                        return Ok(Ended::Exited(128 + Signal::KILL.as_raw()));
                    }
                },
                reason = term.lost(), if !seen.killed => {
                    seen.killed = true;
                    seen.lost.get_or_insert(reason.to_string());
                    guarded.kill();
                }
                raw = hands.signals.next() => {
                    hands.asked |= raw == Signal::TERM.as_raw();
                    // We do not stand still, and neither does the job: its lease would end.
                    if raw != Signal::TSTP.as_raw() {
                        guarded.signal(raw);
                    }
                }
                result = &mut proclaim, if !proclaimed => {
                    proclaimed = true;
                    if let Err(error) = result {
                        debug!("since when it runs could not be told: {error}");
                    }
                }
                () = env.sleep_until(next_look(env.now(), &limits, &term)) => {
                    if env.now() >= limits.kill_at() {
                        // The guardian does it, too, unless it stands still.
                        guarded.kill();
                    } else if !term.is_stopped() && seen.lost.is_none() {
                        limits = extend(&mut guarded, limits, &term, stop_within);
                    }
                }
            }
        };
        guarded.finish().await;
        hands.terminal.take_back();
        debug!(job = %self.args.job, token, code, forced, "the job has ended");
        let lost = match seen.lost {
            _ if hands.asked => None,
            None if forced || !term.is_valid() => Some("no renewal in time".to_owned()),
            lost => lost,
        };
        Ok(match lost {
            Some(reason) => Ended::Lost(format!("{reason}; the job was stopped")),
            None => Ended::Exited(code),
        })
    }

    /// With `--once`: exit code 0 counts only when it is written down.
    async fn mark_done(&self, term: &Term) -> Result<Ended, Exit> {
        let Some(mark) = &self.mark else {
            return Ok(Ended::Exited(0));
        };
        let (env, mut told) = (self.coordinator.env(), Told::default());
        let marking = async {
            loop {
                match mark.save(term.token(), Progress::Done).await {
                    Ok(()) => return Ok(Ended::Exited(0)),
                    Err(error) if error.is_transient() => {
                        told.tell(format!("{}: not marked as done yet: {error}", self.args.job));
                    }
                    Err(error @ CheckpointError::Superseded { .. }) => {
                        return Err(Exit::superseded(format!(
                            "{}: run {} has ended well, but is not marked as done: {error}",
                            self.args.job, self.args.run_id
                        )));
                    }
                    Err(error) => return Err(checkpoint_exit(error)),
                }
                env.sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            biased;
            marked = marking => marked,
            () = term.stopped() => Ok(Ended::Lost(format!(
                "run {} has ended well, but could not be marked as done in time: it runs again",
                self.args.run_id
            ))),
        }
    }
}

/// The kernel has stopped the job because it used the terminal from the background; or somebody has.
fn paused(guarded: &mut Guarded, signal: i32, terminal: &mut Terminal) {
    let Some(group) = guarded.group() else {
        return;
    };
    let of_terminal = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw).contains(&signal);
    // Suspended with Ctrl-Z: it goes on, for its lease would end meanwhile. Stopped by another signal: so be it.
    let goes_on = match of_terminal {
        true => terminal.lend(group),
        false => signal == Signal::TSTP.as_raw(),
    };
    if goes_on {
        guarded.signal(Signal::CONT.as_raw());
    }
}

/// As the clock and the last renewal have it.
fn limits(term: &Term, stop_within: Duration) -> Limits {
    let stop_at = term.stop_at();
    // The time from the kill to the end of everything is part of `stop_within`.
    Limits::new(stop_at, stop_at + stop_within - TO_DIE)
}

/// Tells the guardian if the lease was renewed.
fn extend(guarded: &mut Guarded, told: Limits, term: &Term, stop_within: Duration) -> Limits {
    let now = limits(term, stop_within);
    if now.stop_at > told.stop_at {
        guarded.limits(now);
        return now;
    }
    told
}

/// The closer the end of what the guardian knows, the more often it is told.
fn next_look(now: Instant, limits: &Limits, term: &Term) -> Instant {
    if now >= limits.stop_at() || term.is_stopped() {
        return limits.kill_at().max(now + SELDOM);
    }
    now + ((limits.stop_at() - now) / 4).clamp(SELDOM, OFTEN)
}
