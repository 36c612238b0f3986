//! Drivers that are wrong in one way: on a schedule that shows it, a checker finds each of them; and the right driver, on
//! the same schedule, is right.

use std::time::Duration;

use coord_faults::client::{Mutant, Part, Store};
use coord_faults::history::save;
use coord_faults::nemesis::{Fault, Step, Way};
use coord_faults::{Ran, RunOptions, run};

fn step(fault: Fault, hold: u64) -> Step {
    Step {
        after: Duration::from_millis(300),
        fault,
        hold: Duration::from_millis(hold),
        pick: 0,
        renewed: false,
    }
}

fn options(parts: &[Part], plan: Vec<Step>) -> RunOptions {
    let program = env!("CARGO_BIN_EXE_faults").into();
    RunOptions {
        nodes: 1,
        clients: 2,
        parts: parts.into(),
        plan: Some(plan),
        longest_term: Duration::from_secs(600),
        to_the_end: false,
        call_deadline: Duration::from_secs(4),
        ..RunOptions::new(Store::Etcd, 1, Duration::ZERO, program)
    }
}

/// What this checker finds.
fn found(ran: &Ran, checker: &str) -> Vec<String> {
    let of_it = ran.verdicts.iter().filter(|verdict| verdict.checker == checker);
    of_it
        .flat_map(|verdict| &verdict.violations)
        .map(ToString::to_string)
        .collect()
}

async fn caught(options: RunOptions, mutant: Mutant, checker: &str, with: &str) {
    let wrong = RunOptions {
        mutant: Some(mutant),
        ..options.clone()
    };
    let (wrong, right) = tokio::join!(run(&wrong), run(&options));
    let (wrong, right) = (wrong.unwrap(), right.unwrap());
    let kept = std::env::temp_dir().join(format!("coord-faults-{mutant:?}.jsonl"));
    let (wrong, right, lines) = (found(&wrong, checker), found(&right, checker), wrong.lines);
    if !wrong.iter().any(|text| text.contains(with)) {
        save(&kept, &lines).unwrap();
        panic!(
            "{mutant:?} went unnoticed, its history is {}: {wrong:#?}",
            kept.display()
        );
    }
    assert_eq!(right, Vec::<String>::new(), "the right driver was blamed");
    eprintln!("{mutant:?}: {}", wrong[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_sent_is_sent_again() {
    // Shorter than a call's deadline: what is sent again has its answer.
    let lost = step(Fault::AllWays(Way::DropAnswers), 700);
    let options = options(&[Part::Registers], vec![lost; 8]);
    caught(options, Mutant::RetryOfSentWrite, "linearizability", "no order from").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_counts_from_the_answer() {
    // After a renewal nothing more gets through until the lease has surely ended. The ttl leaves a second between the
    // moment when a late answer is looked at and the next renewal.
    let silent = Step {
        renewed: true,
        ..step(Fault::Way(Way::HalfOpen), 16_000)
    };
    let options = RunOptions {
        ttl: Duration::from_secs(12),
        ..options(&[Part::Elections], vec![silent])
    };
    caught(options, Mutant::DeadlineFromAnswer, "elections", "both valid").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resync_is_skipped() {
    let options = options(&[Part::Registers, Part::Watches], vec![step(Fault::CutToTheEnd, 5000)]);
    caught(options, Mutant::SkippedResync, "watches", "ends with").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resignation_is_not_guarded() {
    // The leader resigns while its requests are held; they arrive when another one leads.
    let late = || step(Fault::AllWays(Way::LateRequests), 400);
    let one = || step(Fault::Way(Way::LateRequests), 7000);
    let options = RunOptions {
        longest_term: Duration::from_secs(3),
        ..options(&[Part::Elections], vec![late(), one(), late(), one()])
    };
    caught(options, Mutant::UnguardedResign, "elections", "deleted while it led").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_is_believed_without_proof() {
    let silent = step(Fault::Way(Way::HalfOpen), 6000);
    let options = options(&[Part::Elections], vec![silent]);
    caught(options, Mutant::RenewalWithoutProof, "elections", "both valid").await;
}
