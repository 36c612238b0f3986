//! Runs the fault suite, and is its client as well: `faults help` tells how.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use coord_faults::check::check_run;
use coord_faults::client::{self, Store};
use coord_faults::history::{load, save};
use coord_faults::{Ran, Report, RunOptions, Scribe, Summary, run_with, timeline};

const HELP: &str = "\
faults run [--store etcd|zookeeper] [--schedules 20] [--seconds 60] [--seed 1] [--out target/faults]
    runs schedules on real three-node clusters, on both stores without --store; ends with a report
faults check HISTORY
    checks a history that a run has kept
faults timeline HISTORY PICTURE
    draws it";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = match &args[..] {
        ["run", flags @ ..] => run_all(flags).await,
        ["check", history] => check_again(Path::new(history)),
        ["timeline", history, picture] => draw(Path::new(history), Path::new(picture)),
        ["client", config] => work(config).await,
        _ => {
            println!("{HELP}");
            Ok(args == ["help"])
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("faults: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Flags {
    stores: Vec<Store>,
    schedules: u64,
    length: Duration,
    seed: u64,
    out: PathBuf,
}

impl Flags {
    fn parse(args: &[&str]) -> Result<Flags, String> {
        let mut flags = Flags {
            stores: Store::ALL.into(),
            schedules: 20,
            length: Duration::from_secs(60),
            seed: 1,
            out: "target/faults".into(),
        };
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
        for pair in args.chunks(2) {
            match *pair {
                ["--store", name] => flags.stores = vec![Store::named(name).ok_or(format!("no store {name:?}"))?],
                ["--schedules", count] => flags.schedules = number(count)?,
                ["--seconds", seconds] => flags.length = Duration::from_secs(number(seconds)?),
                ["--seed", seed] => flags.seed = number(seed)?,
                ["--out", out] => flags.out = out.into(),
                _ => return Err(format!("{pair:?} is not understood\n{HELP}")),
            }
        }
        Ok(flags)
    }
}

async fn run_all(args: &[&str]) -> Result<bool, Box<dyn Error>> {
    let flags = Flags::parse(args)?;
    let program = std::env::current_exe()?;
    let mut reports = vec![];
    let mut right = true;
    for store in flags.stores {
        let mut runs = vec![];
        for seed in flags.seed..flags.seed + flags.schedules {
            let options = RunOptions::new(store, seed, flags.length, program.clone());
            let replay = options.replay();
            // In a task of its own: servers that do not come up panic, and the others still have their turn.
            let scribe = Scribe::default();
            let running = {
                let scribe = scribe.clone();
                tokio::spawn(async move { run_with(&options, scribe).await })
            };
            let why = match running.await {
                Ok(Ok(ran)) => {
                    let summary = keep(&flags.out, store, seed, ran)?;
                    tell(store, &summary, &replay);
                    runs.push(summary);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(panic) => panic.to_string(),
            };
            right = false;
            println!("{} seed {seed}: {why}\n  replay: {replay}", store.name());
            let (lines, verdicts) = (scribe.lines(), vec![]);
            keep(&flags.out, store, seed, Ran { lines, verdicts })?;
        }
        reports.push(Report { store, runs });
    }
    for report in &reports {
        println!("\n{report}");
        right &= report.is_right();
    }
    Ok(right)
}

fn tell(store: Store, summary: &Summary, replay: &str) {
    println!("{:9} {summary}", store.name());
    for verdict in &summary.verdicts {
        for violation in verdict.violations.iter().take(5) {
            println!("  {}: {violation}", verdict.checker);
        }
        for undecided in &verdict.undecided {
            println!("  {}: [undecided] {undecided}", verdict.checker);
        }
    }
    if !summary.is_right() {
        println!("  replay: {replay}");
    }
}

/// The history and the picture of a run, to look at later.
fn keep(out: &Path, store: Store, seed: u64, ran: Ran) -> Result<Summary, Box<dyn Error>> {
    let Ran { lines, verdicts } = ran;
    let name = format!("{}-{seed}", store.name());
    std::fs::create_dir_all(out)?;
    save(&out.join(format!("{name}.jsonl")), &lines)?;
    let title = format!("{} under faults, seed {seed}", store.name());
    std::fs::write(out.join(format!("{name}.svg")), timeline(&title, &lines))?;
    Ok(Summary::of(seed, &lines, verdicts))
}

fn check_again(history: &Path) -> Result<bool, Box<dyn Error>> {
    let lines = load(history)?;
    let summary = Summary::of(0, &lines, check_run(&lines));
    println!("{summary}");
    for verdict in &summary.verdicts {
        for violation in &verdict.violations {
            println!("{}: {violation}", verdict.checker);
        }
        for undecided in &verdict.undecided {
            println!("{}: [undecided] {undecided}", verdict.checker);
        }
    }
    Ok(summary.is_right())
}

fn draw(history: &Path, picture: &Path) -> Result<bool, Box<dyn Error>> {
    let title = history.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::write(picture, timeline(&title, &load(history)?))?;
    Ok(true)
}

async fn work(config: &str) -> Result<bool, Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    client::run(serde_json::from_str(config)?).await?;
    Ok(true)
}
