//! Runs that are done once.

use std::sync::Arc;

use coord_harness::eventually;
use rustix::process::Signal;

use crate::scenes;
use crate::stage::{LONG, SHORT, Stage, code, finish};

scenes![
    twenty_copies_run_it_once,
    a_run_that_did_not_end_well_is_run_again,
    a_copy_that_was_asked_to_end_does_so_although_it_cannot_mark_the_run,
];

async fn twenty_copies_run_it_once(stage: Arc<Stage>) {
    let job = stage.job("once");
    let options = ["--once", "--run-id", "2026-11-18"];
    let script = r#"echo "ran $COORD_RUN_ID" >> "$LOG"; sleep 0.5"#;
    let mut copies: Vec<_> = (0..20)
        .map(|who| job.copy(&format!("c{who}"), &options, script))
        .collect();
    for copy in &mut copies {
        assert_eq!(copy.code().await, Some(0), "{}", copy.name);
    }
    assert_eq!(job.lines("ran"), ["2026-11-18"]);
    // A latecomer does not run it, either; the next run is another.
    for (run, ran) in [("2026-11-18", 1), ("2026-11-19", 2)] {
        let output = finish(job.command("late", &["--once", "--run-id", run], &["sh", "-c", script])).await;
        assert_eq!((code(&output), job.lines("ran").len()), (0, ran));
    }
}

async fn a_run_that_did_not_end_well_is_run_again(stage: Arc<Stage>) {
    let job = stage.job("again");
    let options = [&["--once"], &SHORT[..]].concat();
    let failing = finish(job.command("a", &options, &["sh", "-c", "exit 3"])).await;
    assert_eq!(code(&failing), 3);
    // The copy that runs it crashes; the next one does it.
    let crashing = job.copy("b", &options, r#"echo "began b" >> "$LOG"; sleep 60"#);
    eventually(LONG, "the job", || {
        let began = !job.lines("began").is_empty();
        async move { began }
    })
    .await;
    let mut next = job.copy("c", &options, r#"echo "began c" >> "$LOG""#);
    job.in_line(2).await;
    crashing.signal(Signal::KILL);
    assert_eq!(next.code().await, Some(0));
    assert_eq!(job.lines("began"), ["b", "c"]);
}

async fn a_copy_that_was_asked_to_end_does_so_although_it_cannot_mark_the_run(stage: Arc<Stage>) {
    let (job, way) = (stage.job("unmarked"), stage.way().await);
    let script = r#"trap 'exit 0' TERM; echo ready >> "$LOG"; while :; do sleep 0.05; done"#;
    let options = [&["--once"], &SHORT[..]].concat();
    let mut copy = job.copy_via(Some(&way), "a", &options, script);
    eventually(LONG, "the job", || {
        let ready = !job.lines("ready").is_empty();
        async move { ready }
    })
    .await;
    way.black_hole();
    copy.signal(Signal::TERM);
    assert_eq!(copy.code().await, Some(76), "it does not go back into the line");
}
